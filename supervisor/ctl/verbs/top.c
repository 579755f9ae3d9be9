/* SPDX-License-Identifier: MIT */

/* The verb top: what groups, cells and workers do, as a table that is printed again and again. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <stdio.h>
#include <time.h>

#define INTERVAL USEC_PER_SEC
/* Asking about very large groups takes at most one part in so many of the time. */
#define SHARE 5
/* The last deaths that are shown. */
#define DEATHS 5

struct top {
    json_t *info; /* the last reply of GetInfo; NULL = none so far */
    json_t *done; /* by group: how many jobs had ended at `at`; NULL = not known */
    usec_t at;    /* monotonic */
    int64_t n;    /* pictures so far */
};

/* ---- columns ---- */

/* A service has no jobs, and a worker has no queue. */
#define OF_JOBS(pattern) "[{type=service}|" pattern "]"

static const struct list_column columns[] = {
    {"NAME", "{line}", LIST_LEFT},
    {"STATE", "{state:state}", LIST_LEFT},
    {"UP", "[{up:count}/{members:count}]", LIST_RIGHT},
    {"QUEUED", OF_JOBS("{queued:count}"), LIST_RIGHT},
    {"OLDEST", "[{oldest_queued_at:age}]", LIST_RIGHT},
    {"RUNNING", OF_JOBS("{running:count}"), LIST_RIGHT},
    {"JOBS/S", OF_JOBS("{rate:rate}"), LIST_RIGHT},
    {"DEATHS", "[{deaths:count}|{restarts:count}|0]", LIST_RIGHT},
    {"TOOK99", "[{p99_usec:span}]", LIST_RIGHT},
    {"RUN99", "[{job_since_at:age}|{p99_work_usec:span}]", LIST_RIGHT},
    {0},
};

/* ---- rows ---- */

static bool is_in_trouble(const json_t *item)
{
    static const char *const states[] = {"failed", "failing", "degraded", "backoff", "killing"};

    for (size_t i = 0; i < ELEMENTS(states); i++)
        if (field_is(item, "state", states[i]))
            return true;
    return false;
}

/* Adds groups, cells or workers, those in trouble first, each followed by what it consists of. */
static void add_rows(json_t *rows, const json_t *items, int depth, const char *group)
{
    for (int trouble = 1; trouble >= 0; trouble--)
        for (size_t i = 0; i < json_array_size(items); i++) {
            json_t *item = json_array_get(items, i);
            const char *name = field_text(item, "name"), *key = field_text(item, "key");
            json_t *row;

            if (is_in_trouble(item) != trouble)
                continue;
            row = json_copy(item);
            json_object_set_new(row, "state", json_string(view_state(item)));
            json_object_set_new(row, "line",
                                *name ? json_sprintf("%*s%s", 2 * depth, "", name)
                                      : json_sprintf("%*s%s/%s", 2 * depth, "", group, key));
            (void)json_array_append_new(rows, row);
            add_rows(rows, json_object_get(item, "cells"), depth + 1, name);
            add_rows(rows, json_object_get(item, "workers"), depth + 1, name);
        }
}

static json_int_t jobs_done(const json_t *group)
{
    return field_int(group, "succeeded") + field_int(group, "rejected") +
           field_int(group, "cancelled") + field_int(group, "dead");
}

/* Gives groups their rates since the last time, and keeps their counters for the next. */
static void rate_groups(struct top *top, const json_t *groups, usec_t now)
{
    const double seconds = (double)usec_sub(now, top->at) / (double)USEC_PER_SEC;
    json_t *done = json_object();

    for (size_t i = 0; i < json_array_size(groups); i++) {
        json_t *group = json_array_get(groups, i);
        const char *name = field_text(group, "name");
        const json_t *before = json_object_get(top->done, name);
        const json_int_t now_done = jobs_done(group);

        if (before && seconds > 0)
            json_object_set_new(
                group, "rate",
                json_real((double)(now_done - json_integer_value(before)) / seconds));
        json_object_set_new(done, name, json_integer(now_done));
    }
    json_decref(top->done);
    top->done = done;
    top->at = now;
}

/* ---- the picture ---- */

static uint64_t sum_of(const json_t *groups, const char *member)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < json_array_size(groups); i++)
        sum += field_count(json_array_get(groups, i), member);
    return sum;
}

static const char INFO[] =
    BOLD "trouped {version}" PLAIN ", up {started_at:age}; {groups_shown} group{groups_shown:s}, "
         "{up:count} of {members:count} workers up; {queued:count} queued, {running:count} running"
         "[{safe_mode}" RED "; safe mode" PLAIN "]"
         "[{config_problem:if}" RED "; configuration problem" PLAIN "]\n"
         "{dead:count} jobs dead; {clients:count} client{clients:s}; "
         "delays up to {recent_turn_usec:span}";

static void print_summary(const struct terminal *out, const json_t *info, const json_t *groups)
{
    static const char *const sums[] = {"up", "members", "queued", "running", "dead"};
    json_auto_t *view = json_copy((json_t *)(uintptr_t)info);

    for (size_t i = 0; i < ELEMENTS(sums); i++)
        json_object_set_new(view, sums[i], json_integer((json_int_t)sum_of(groups, sums[i])));
    json_object_set_new(view, "groups_shown", json_integer((json_int_t)json_array_size(groups)));
    pattern_print(out, INFO, view, clock_realtime());
}

static const char DEATH[] =
    "{at:moment} " BOLD "{worker}" PLAIN " {detail} after {uptime_usec:span}"
    "[, job {job}][: {stderr:last}]";

/* Leaves out rows that do not fit on the screen beside `n_others` lines. Returns their number. */
static size_t cut_rows(const struct terminal *out, json_t *rows, size_t n_others)
{
    const size_t n = json_array_size(rows);
    const size_t room = out->height > n_others ? out->height - n_others : 0;

    if (out->height == 0 || n <= room)
        return 0;
    while (json_array_size(rows) > room)
        json_array_remove(rows, json_array_size(rows) - 1);
    return n - room;
}

static void print_picture(struct terminal *out, const json_t *info, const json_t *groups,
                          const json_t *deaths)
{
    const size_t n_deaths = json_array_size(deaths);
    json_auto_t *rows = json_array();
    size_t n_left;

    terminal_measure(out);
    if (out->is_terminal)
        fputs("\033[H\033[J", out->file);
    print_summary(out, info, groups);
    add_rows(rows, groups, 0, NULL);
    /* Two lines above, the titles, "more", the title of the deaths, and the cursor's line. */
    n_left = cut_rows(out, rows, n_deaths + 6);
    list_print(out, "", columns, rows, clock_realtime());
    if (n_left > 0)
        terminal_print(out, DIM "and %s more" PLAIN, COUNT(n_left));
    if (n_deaths > 0)
        terminal_print(out, BOLD "LAST DEATHS" PLAIN);
    for (size_t i = 0; i < n_deaths; i++)
        pattern_print(out, DEATH, json_array_get(deaths, i), 0);
    if (!out->is_terminal)
        fputc('\n', out->file);
}

/* ---- the verb ---- */

static int refresh(struct invocation *invocation, struct top *top)
{
    const char *target = invocation_operand(invocation, 0);
    const int64_t started_at = field_int(top->info, "started_at");
    json_auto_t *info = NULL, *status = NULL, *deaths = NULL;
    const json_t *groups;
    int r = call(invocation, CALL_SUPERVISOR "GetInfo", json_object(), false, &info);

    if (r == EXIT_OK)
        r = parts_of_status(invocation, target, !target && !invocation->options.all, &status);
    if (r == EXIT_OK)
        r = call(invocation, CALL_SUPERVISOR "ListDeaths",
                 json_pack("{s:s*, s:i}", "target", target, "limit", DEATHS), false, &deaths);
    if (r != EXIT_OK)
        return r;
    json_decref(top->info);
    top->info = json_incref(info);
    if (field_int(info, "started_at") != started_at) { /* counters begin again */
        json_decref(top->done);
        top->done = NULL;
    }
    groups = json_object_get(status, "groups");
    rate_groups(top, groups, clock_now());
    print_picture(&invocation->out, info, groups, json_object_get(deaths, "deaths"));
    return fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
}

static int run(struct invocation *invocation, struct reconnect *reconnect, void *userdata)
{
    const struct options *options = &invocation->options;
    const usec_t interval = options->interval > 0 ? options->interval : INTERVAL;
    struct top *top = userdata;

    for (;;) {
        const usec_t begin = clock_now();
        int r = refresh(invocation, top);
        struct timespec pause;
        usec_t least;

        if (r != EXIT_OK)
            return r;
        reconnect_done(reconnect);
        if (options->count > 0 && ++top->n >= options->count)
            return EXIT_OK;
        least = (SHARE - 1) * usec_sub(clock_now(), begin);
        pause = usec_to_timespec(interval > least ? interval : least);
        (void)nanosleep(&pause, NULL);
    }
}

int verb_top(struct invocation *invocation)
{
    struct top top = {.info = NULL};
    int r;

    if (invocation->options.json) {
        complain("top prints no JSON: see 'troupectl metrics --json'");
        return EXIT_USAGE;
    }
    /* Each picture is written at once, so that it does not flicker. */
    (void)setvbuf(stdout, NULL, _IOFBF, (size_t)64 << 10);
    r = reconnect_run(invocation, USEC_INFINITY, run, &top);
    json_decref(top.info);
    json_decref(top.done);
    return r;
}
