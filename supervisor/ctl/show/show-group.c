/* SPDX-License-Identifier: MIT */

/* Shows the status of a group. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/show/pool-view.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/table.h"
#include <string.h>

/* A job that has waited longer is highlighted. */
#define LONG_WAIT (60 * USEC_PER_SEC)
/* Groups of up to this size are shown with all workers; of larger ones, some that need attention.
 */
#define SMALL_POOL  6
#define NOTABLE_MAX 10

static void show_title(const struct terminal *terminal, const json_t *group, usec_t now)
{
    const char *state = show_group_state(group), *description = field_text(group, "description");
    struct joined why = JOINED_NULL;

    show_why(&why, group, now);
    terminal_print(terminal, "%s " BOLD "%s" PLAIN "%s%s: %s%s%s%s",
                   DOT(show_has_failing_cells(group) ? "failing" : state),
                   SAFE(field_text(group, "name")), *description ? " - " : "", SAFE(description),
                   STATE(state), field_is(group, "type", "service") ? " (service)" : "",
                   *why.text ? " – " : "", why.text);
}

static void show_workers_line(const struct terminal *terminal, const json_t *group)
{
    const uint64_t size = field_count(group, "size"), up = pool_count(group, pool_is_up);
    struct joined states = JOINED_NULL;

    pool_tally(group, &states);
    terminal_print(terminal, "   Workers: %s%s of %s up" PLAIN "%s%s", up < size ? BOLD : "",
                   COUNT(up), COUNT(size), *states.text ? ": " : "", states.text);
}

static void show_queue_line(const struct terminal *terminal, const json_t *group, usec_t now)
{
    const uint64_t queued = field_count(group, "queued"), refused = field_count(group, "refused"),
                   senders = field_count(group, "senders");
    const usec_t oldest = field_usec(group, "oldest_queued_at"), age = usec_sub(now, oldest);
    struct joined text = JOINED_NULL;

    if (queued == 0)
        joined_add(&text, "empty");
    else
        joined_add(&text, "%s job%s (%s)", COUNT(queued), plural(queued),
                   BYTES(field_count(group, "queue_bytes")));
    if (queued > 0 && oldest > 0)
        joined_add(&text, "the oldest waits for %s%s" PLAIN, age > LONG_WAIT ? YELLOW : "",
                   SPAN(age));
    text.separator = "; ";
    if (refused > 0)
        joined_add(&text, YELLOW "%s refused" PLAIN " so far", COUNT(refused));
    text.separator = "; ";
    if (senders > 0)
        joined_add(&text, YELLOW "%s sender%s" PLAIN " wait%s for room", COUNT(senders),
                   plural(senders), senders == 1 ? "s" : "");
    terminal_print(terminal, "     Queue: %s", text.text);
}

/* The numbers in the line about jobs. */
static const struct {
    const char *member, *text, *color;
    const char *separator; /* before it */
} job_counts[] = {
    {"running", "running", "", ", "},   {"waiting", "delayed or between attempts", YELLOW, ", "},
    {"dead", "dead", RED, "; "},        {"succeeded", "succeeded", "", ", "},
    {"rejected", "rejected", "", ", "}, {"cancelled", "cancelled", "", ", "},
    {"retries", "retried", "", "; "},   {"results", "kept", "", ", "},
};

static void show_jobs_line(const struct terminal *terminal, const json_t *group)
{
    const uint64_t bytes = field_count(group, "results_bytes");
    struct joined text = JOINED_NULL;

    for (size_t i = 0; i < ELEMENTS(job_counts); i++) {
        const uint64_t count = field_count(group, job_counts[i].member);

        if (*job_counts[i].separator == ';')
            text.separator = "; ";
        if (count > 0)
            joined_add(&text, "%s%s %s" PLAIN, job_counts[i].color, COUNT(count),
                       job_counts[i].text);
    }
    terminal_print(terminal, "      Jobs: %s%s%s%s", *text.text ? text.text : "none yet",
                   bytes > 0 ? " (" : "", bytes > 0 ? BYTES(bytes) : "", bytes > 0 ? ")" : "");
}

static void show_latency_line(const struct terminal *terminal, const json_t *group)
{
    char work[3 * FORMAT_SIZE] = "";

    if (!field_has(group, "p99_usec"))
        return;
    if (field_has(group, "p99_work_usec"))
        snprintf(work, sizeof(work), "; at work: %s, %s", SPAN(field_usec(group, "p50_work_usec")),
                 SPAN(field_usec(group, "p99_work_usec")));
    terminal_print(terminal, "      Took: at most %s for half of the last jobs, %s for 99 %%%s",
                   SPAN(field_usec(group, "p50_usec")), SPAN(field_usec(group, "p99_usec")), work);
}

/* `last_shown`: the last death already has a line of its own. */
static void show_deaths_line(const struct terminal *terminal, const json_t *group, usec_t now,
                             bool last_shown)
{
    const json_t *death = last_shown ? NULL : pool_latest_death(group);
    uint64_t deaths = field_count(group, "deaths");

    if (deaths == 0 && !death)
        return;
    if (!death)
        terminal_print(terminal, "    Deaths: %s", COUNT(deaths));
    else
        terminal_print(terminal, "    Deaths: %s, the last %s: %s %s", COUNT(deaths),
                       AGO(now, field_usec(death, "at")), SAFE(field_text(death, "worker")),
                       SAFE(field_text(death, "detail")));
}

/* A running group may still run its old program after a reload; and somebody relies on limits. */
static void show_configuration(const struct terminal *terminal, const json_t *group)
{
    if (field_true(group, "behind"))
        terminal_print(terminal,
                       "    Reload: " YELLOW "the new program did not come up" PLAIN
                       ", workers continue with the old one; see 'troupectl deaths %s', fix it and "
                       "reload again",
                       SAFE(field_text(group, "name")));
    if (field_has(group, "no_effect"))
        terminal_print(
            terminal, "    Limits: " YELLOW "%s" PLAIN " without effect here, see 'troupectl info'",
            SAFE(field_text(group, "no_effect")));
    if (field_has(group, "sandbox"))
        terminal_print(terminal, "   Sandbox: %s", SAFE(field_text(group, "sandbox")));
}

/* Workers that were started in different ways are usually few. */
static void show_in_force(const struct terminal *terminal, const json_t *group)
{
    const json_t *workers = json_object_get(group, "workers");
    const char *last = "";

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const char *text = field_text(json_array_get(workers, i), "in_force");

        if (*text != '\0' && strcmp(text, last) != 0)
            terminal_print(terminal, "  In force: %s", SAFE(text));
        last = text;
    }
}

static void add_state(struct table *table, const json_t *worker, bool service, usec_t now)
{
    const char *state = field_text(worker, "state"), *name = pool_state_name(state, service);
    usec_t since = field_usec(worker, "since_at"), restart_at = field_usec(worker, "restart_at");

    if (strcmp(state, "backoff") == 0 && restart_at > 0)
        table_add(table, "%s in %s", STATE_AS(state, "restarts"), SPAN(usec_sub(restart_at, now)));
    else if (since > 0 && !field_has(worker, "job"))
        table_add(table, "%s for %s", STATE_AS(state, name), SPAN(usec_sub(now, since)));
    else
        table_add(table, "%s", STATE_AS(state, name));
}

static void add_remarks(struct table *table, const json_t *worker, usec_t now)
{
    const json_t *death = json_object_get(worker, "last_death");
    const json_t *published = json_object_get(worker, "published");
    const usec_t since = field_usec(worker, "job_since_at");
    struct joined text = JOINED_NULL;
    char page[128];

    if (field_has(worker, "replacement"))
        joined_add(&text, "%s", SAFE(field_text(worker, "replacement")));
    if (field_has(worker, "job"))
        joined_add(&text, "job %s%s%s", SAFE(field_text(worker, "job")), since > 0 ? " for " : "",
                   since > 0 ? SPAN(usec_sub(now, since)) : "");
    if (field_has(worker, "status"))
        joined_add(&text, "%s", SAFE(field_text(worker, "status")));
    if (field_has(worker, "job") && field_is(published, "encoding", "utf8"))
        joined_add(&text, "\"%s\"", format_safe(page, sizeof(page), field_text(published, "data")));
    if (pool_is_failure(death))
        joined_add(&text, "%s %s", SAFE(field_text(death, "detail")),
                   AGO(now, field_usec(death, "at")));
    table_add(table, "%s", text.text);
}

static void add_worker(struct table *table, const json_t *worker, bool service, usec_t now)
{
    const json_t *death = json_object_get(worker, "last_death");
    const uint64_t restarts = field_count(worker, "restarts");
    char line[1024];

    table_add(table, "%s %s", DOT(field_text(worker, "state")), SAFE(field_text(worker, "name")));
    add_state(table, worker, service, now);
    if (field_has(worker, "pid"))
        table_add(table, "pid %lld", (long long)field_int(worker, "pid"));
    else
        table_add(table, "%s", "");
    if (restarts > 0)
        table_add(table, "%s restart%s", COUNT(restarts), plural(restarts));
    else
        table_add(table, "%s", "");
    add_remarks(table, worker, now);
    if (pool_is_notable(worker, now) && pool_is_failure(death) &&
        *show_last_line(line, sizeof(line), field_text(death, "stderr")))
        table_note(table, "     " DIM "│" PLAIN " %s", line);
}

static void show_workers(const struct terminal *terminal, const json_t *group, usec_t now, bool all)
{
    const json_t *workers = json_object_get(group, "workers");
    const bool service = field_is(group, "type", "service");
    const size_t n = json_array_size(workers);
    size_t n_shown = 0;
    struct table table;

    table_init(&table, 5, "   ");
    for (size_t i = 0; i < n; i++) {
        const json_t *worker = json_array_get(workers, i);

        if (all || n <= SMALL_POOL || (n_shown < NOTABLE_MAX && pool_is_notable(worker, now))) {
            add_worker(&table, worker, service, now);
            n_shown++;
        }
    }
    table_print(&table, terminal);
    table_deinit(&table);
    if (n_shown > 0 && n_shown < n)
        terminal_print(terminal, "   " DIM "and %s more" PLAIN, COUNT(n - n_shown));
}

static void show_pool(const struct terminal *terminal, const json_t *group, usec_t now, bool all)
{
    bool last_shown;

    show_title(terminal, group, now);
    show_workers_line(terminal, group);
    if (!field_is(group, "type", "service")) {
        show_queue_line(terminal, group, now);
        show_jobs_line(terminal, group);
        show_latency_line(terminal, group);
    }
    last_shown = show_last(terminal, group, now);
    show_deaths_line(terminal, group, now, last_shown);
    if (pool_in_state(group, "failed") > 0)
        terminal_print(terminal, "            when that is mended: troupectl reset %s",
                       SAFE(field_text(group, "name")));
    show_configuration(terminal, group);
    show_in_force(terminal, group);
    if (field_has(group, "cells"))
        show_cells(terminal, group, now, all);
    else
        show_workers(terminal, group, now, all);
}

void show_group(const struct terminal *terminal, const json_t *group, usec_t now, bool all)
{
    json_auto_t *whole = cells_merge(group);

    if (whole)
        show_pool(terminal, whole, now, all);
}

void show_cell(const struct terminal *terminal, const json_t *group, const json_t *cell, usec_t now,
               bool all)
{
    json_auto_t *alone = cells_as_group(group, cell);

    if (alone)
        show_pool(terminal, alone, now, all);
}
