/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/show/show-why.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <string.h>
#include <time.h>

const char *show_group_state(const json_t *group)
{
    return field_has(group, "fault") && field_is(group, "state", "failed")
               ? "cannot start"
               : field_text(group, "state");
}

/* Writes the time of day, with the date if it is not today. */
static void write_clock(FILE *file, usec_t at, usec_t now)
{
    time_t then = (time_t)(at / USEC_PER_SEC), today = (time_t)(now / USEC_PER_SEC);
    struct tm at_tm, now_tm;
    char text[FORMAT_SIZE];
    bool same_day;

    localtime_r(&then, &at_tm);
    localtime_r(&today, &now_tm);
    same_day = at_tm.tm_year == now_tm.tm_year && at_tm.tm_yday == now_tm.tm_yday;
    if (strftime(text, sizeof(text), same_day ? "%H:%M" : "%Y-%m-%d %H:%M", &at_tm) > 0)
        fprintf(file, " (since %s)", text);
}

static void write_failing(FILE *file, const json_t *group, usec_t now)
{
    uint64_t n = field_count(group, "last_jobs"), dead = field_count(group, "last_jobs_dead");

    fprintf(file, "%llu %% of the last %s jobs dead",
            (unsigned long long)(n > 0 ? dead * 100 / n : 0), COUNT(n));
    write_clock(file, field_usec(group, "failing_since_at"), now);
}

/* ---- workers ---- */

static bool never_gets_ready(const json_t *worker)
{
    return field_is(worker, "state", "starting") &&
           field_is(json_object_get(worker, "last_death"), "cause", "start_timeout");
}

static bool has_failed(const json_t *worker)
{
    return field_is(worker, "state", "failed");
}

static bool is_in_backoff(const json_t *worker)
{
    return field_is(worker, "state", "backoff");
}

static bool is_stopped(const json_t *worker)
{
    return field_is(worker, "state", "stopped") || field_is(worker, "state", "stopping");
}

static bool is_up(const json_t *worker)
{
    return field_is(worker, "state", "idle") || field_is(worker, "state", "busy");
}

static bool is_there(const json_t *worker)
{
    return !field_is(worker, "state", "stopped") && !has_failed(worker);
}

static uint64_t count(const struct pool *pool, bool (*is)(const json_t *worker))
{
    uint64_t n = 0;

    for (size_t i = 0; i < pool->n_entries; i++)
        n += !pool_is_spare(pool->entries[i].worker) && is(pool->entries[i].worker);
    return n;
}

static void write_count(FILE *file, const char **separator, uint64_t n, const char *text)
{
    if (n == 0)
        return;
    fprintf(file, "%s%s %s", *separator, COUNT(n), text);
    *separator = ", ";
}

static void write_degraded(FILE *file, const json_t *group, const struct pool *pool)
{
    uint64_t never = count(pool, never_gets_ready);
    const char *separator = "";

    if (field_true(group, "behind")) {
        fprintf(file, "the new program did not come up, the old one goes on");
        separator = ", ";
    }
    write_count(file, &separator, count(pool, has_failed), "failed");
    write_count(file, &separator, never,
                never == 1 ? "does not become ready" : "do not become ready");
    write_count(file, &separator, count(pool, is_in_backoff), "to be restarted later");
    write_count(file, &separator, count(pool, is_stopped), "stopped");
}

/* For how long the first worker has been starting. */
static usec_t longest_start(const struct pool *pool, usec_t now)
{
    usec_t since = now;

    for (size_t i = 0; i < pool->n_entries; i++) {
        const json_t *worker = pool->entries[i].worker;
        usec_t at = field_usec(worker, "since_at");

        if (field_is(worker, "state", "starting") && at > 0 && at < since)
            since = at;
    }
    return usec_sub(now, since);
}

static void write_starting(FILE *file, const json_t *group, const struct pool *pool, usec_t now)
{
    uint64_t up = count(pool, is_up), size = field_count(group, "size");
    usec_t waits = longest_start(pool, now);

    if (count(pool, is_there) == 0) {
        fprintf(file, "waits for the groups of After=");
        return;
    }
    fprintf(file, "%s of %s up", COUNT(up), COUNT(size));
    if (waits > 0)
        fprintf(file, ", not ready for %s", SPAN(waits));
}

static void write_why(FILE *file, const json_t *group, const struct pool *pool, usec_t now)
{
    const char *state = field_text(group, "state");
    uint64_t left = field_count(group, "queued") + field_count(group, "running") +
                    field_count(group, "waiting");

    if (field_has(group, "fault"))
        fprintf(file, "%s%s",
                strcmp(state, "failed") == 0 ? "" : "goes on with the configuration of before: ",
                SAFE(field_text(group, "fault")));
    else if (strcmp(state, "failing") == 0)
        write_failing(file, group, now);
    else if (strcmp(state, "failed") == 0)
        fprintf(file, "%s worker%s died too often", COUNT(count(pool, has_failed)),
                plural(count(pool, has_failed)));
    else if (strcmp(state, "degraded") == 0)
        write_degraded(file, group, pool);
    else if (strcmp(state, "starting") == 0)
        write_starting(file, group, pool, now);
    else if (strcmp(state, "stopping") == 0)
        fprintf(file, "%s of %s worker%s not ended yet", COUNT(count(pool, is_there)),
                COUNT(pool->n_entries), plural(pool->n_entries));
    else if (strcmp(state, "draining") == 0)
        fprintf(file, "removed by a reload, %s job%s left", COUNT(left), plural(left));
}

char *show_why(const json_t *group, const struct pool *pool, usec_t now)
{
    char *text = NULL, *all = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    if (!file)
        return NULL;
    write_why(file, group, pool, now);
    if (fclose(file) == 0 && asprintf(&all, "%s%s", *text ? " – " : "", text) < 0)
        all = NULL;
    free(text);
    return all;
}

/* ---- what happened last ---- */

static const json_t *latest_death(const struct pool *pool)
{
    const json_t *latest = NULL;

    for (size_t i = 0; i < pool->n_entries; i++) {
        const json_t *death = json_object_get(pool->entries[i].worker, "last_death");

        if (pool_is_failure(death) &&
            (!latest || field_usec(death, "at") > field_usec(latest, "at")))
            latest = death;
    }
    return latest;
}

static void show_last_death(const struct terminal *terminal, const json_t *group,
                            const json_t *death, usec_t now)
{
    char line[1024];

    show_last_line(line, sizeof(line), field_text(death, "stderr"));
    terminal_print(terminal, "      Last: %s%s%s (%s, %s)", SAFE(field_text(death, "detail")),
                   *line ? ": " : "", line, SAFE(field_text(death, "worker")),
                   AGO(now, field_usec(death, "at")));
    terminal_print(terminal, "            more: troupectl deaths %s",
                   SAFE(field_text(group, "name")));
}

static void show_last_dead(const struct terminal *terminal, const json_t *group, const json_t *dead,
                           usec_t now)
{
    const char *reason = field_text(dead, "reason");
    char line[1024];

    show_last_line(line, sizeof(line), reason);
    terminal_print(terminal, "      Last: %s (job %s, %s)", *line ? line : "a job is dead",
                   SAFE(field_text(dead, "job")), AGO(now, field_usec(dead, "at")));
    terminal_print(terminal, "            more: troupectl dead-letters --reason job --to %s",
                   SAFE(field_text(group, "name")));
}

bool show_last(const struct terminal *terminal, const json_t *group, const struct pool *pool,
               usec_t now)
{
    const json_t *death = latest_death(pool), *dead = json_object_get(group, "last_dead");

    if (!field_is(group, "state", "failing") && !field_is(group, "state", "failed") &&
        !field_is(group, "state", "degraded"))
        return false;
    /* A death shortly before the job became dead is its cause. */
    if (death && (!dead || field_usec(death, "at") + USEC_PER_SEC >= field_usec(dead, "at"))) {
        show_last_death(terminal, group, death, now);
        return true;
    }
    if (!dead)
        return false;
    show_last_dead(terminal, group, dead, now);
    return true;
}
