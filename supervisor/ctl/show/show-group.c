/* SPDX-License-Identifier: MIT */

/* Shows the status of a group. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/show/cells.h"
#include "supervisor/ctl/show/pool.h"
#include "supervisor/ctl/show/show-why.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/table.h"
#include <string.h>

/* A job that has waited longer is highlighted. */
#define LONG_WAIT (60 * USEC_PER_SEC)

/* ---- lines about the group ---- */

static void show_title(const struct terminal *terminal, const json_t *group,
                       const struct pool *pool, usec_t now)
{
    const char *state = show_group_state(group), *description = field_text(group, "description");
    _cleanup_free_ char *why = show_why(group, pool, now);

    terminal_print(terminal, "%s%s" PLAIN " " BOLD "%s" PLAIN "%s%s: %s%s" PLAIN "%s%s",
                   show_state_color(state), show_state_dot(state), SAFE(field_text(group, "name")),
                   *description ? " - " : "", SAFE(description), show_state_color(state),
                   SAFE(state), pool->service ? " (service)" : "", why ? why : "");
}

static void show_workers_line(const struct terminal *terminal, const json_t *group,
                              const struct pool *pool)
{
    _cleanup_free_ char *states = pool_tally(pool, 0);
    uint64_t size = field_count(group, "size"), up = 0;

    for (size_t i = 0; i < pool->n_entries; i++)
        up += !pool_is_spare(pool->entries[i].worker) &&
              (field_is(pool->entries[i].worker, "state", "idle") ||
               field_is(pool->entries[i].worker, "state", "busy"));
    terminal_print(terminal, "   Workers: %s%s of %s up%s%s%s", up < size ? BOLD : "", COUNT(up),
                   COUNT(size), up < size ? PLAIN : "", states && *states ? ": " : "",
                   states ? states : "");
}

static void show_queue_line(const struct terminal *terminal, const json_t *group, usec_t now)
{
    uint64_t queued = field_count(group, "queued"), refused = field_count(group, "refused");
    usec_t oldest = field_usec(group, "oldest_queued_at"), age = usec_sub(now, oldest);
    uint64_t senders = field_count(group, "senders");
    char note[FORMAT_SIZE * 2] = "", senders_note[FORMAT_SIZE * 2] = "";

    if (refused > 0)
        snprintf(note, sizeof(note), "; " YELLOW "%s refused" PLAIN " so far", COUNT(refused));
    if (senders > 0)
        snprintf(senders_note, sizeof(senders_note),
                 "; " YELLOW "%s sender%s" PLAIN " wait%s for room", COUNT(senders),
                 plural(senders), senders == 1 ? "s" : "");
    if (queued == 0)
        terminal_print(terminal, "     Queue: empty%s%s", note, senders_note);
    else
        terminal_print(terminal, "     Queue: %s job%s (%s)%s%s%s%s%s%s", COUNT(queued),
                       plural(queued), BYTES(field_count(group, "queue_bytes")),
                       oldest > 0 ? ", the oldest waits for " : "",
                       oldest > 0 && age > LONG_WAIT ? YELLOW : "", oldest > 0 ? SPAN(age) : "",
                       oldest > 0 && age > LONG_WAIT ? PLAIN : "", note, senders_note);
}

static void add_count(FILE *file, const char **separator, uint64_t count, const char *text,
                      const char *color)
{
    if (count == 0)
        return;
    fprintf(file, "%s%s%s %s%s", *separator, color, COUNT(count), text, *color ? PLAIN : "");
    *separator = ", ";
}

static void write_jobs(FILE *file, const json_t *group)
{
    const char *separator = "";

    add_count(file, &separator, field_count(group, "running"), "running", "");
    add_count(file, &separator, field_count(group, "waiting"), "delayed or between attempts",
              YELLOW);
    if (*separator)
        separator = "; ";
    add_count(file, &separator, field_count(group, "dead"), "dead", RED);
    add_count(file, &separator, field_count(group, "succeeded"), "succeeded", "");
    add_count(file, &separator, field_count(group, "rejected"), "rejected", "");
    add_count(file, &separator, field_count(group, "cancelled"), "cancelled", "");
    if (*separator)
        separator = "; ";
    add_count(file, &separator, field_count(group, "retries"), "retried", "");
    add_count(file, &separator, field_count(group, "results"), "kept", "");
    if (field_count(group, "results_bytes") > 0)
        fprintf(file, " (%s)", BYTES(field_count(group, "results_bytes")));
}

static void show_jobs_line(const struct terminal *terminal, const json_t *group)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (!file)
        return;
    write_jobs(file, group);
    if (fclose(file) == 0)
        terminal_print(terminal, "      Jobs: %s", *text ? text : "none yet");
}

static void show_latency_line(const struct terminal *terminal, const json_t *group)
{
    char work[3 * FORMAT_SIZE] = "";

    if (!field_has(group, "p99_usec"))
        return;
    if (field_has(group, "p99_work_usec"))
        snprintf(work, sizeof(work), "; at work: %s, %s", SPAN(field_usec(group, "p50_work_usec")),
                 SPAN(field_usec(group, "p99_work_usec")));
    terminal_print(terminal, "      Took: %s for half of the last jobs, %s for 99 %%, at most%s",
                   SPAN(field_usec(group, "p50_usec")), SPAN(field_usec(group, "p99_usec")), work);
}

static const json_t *latest_death(const json_t *workers)
{
    const json_t *latest = NULL;

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *death = json_object_get(json_array_get(workers, i), "last_death");

        if (pool_is_failure(death) &&
            (!latest || field_usec(death, "at") > field_usec(latest, "at")))
            latest = death;
    }
    return latest;
}

/* `last_shown`: the last death already has a line of its own. */
static void show_deaths_line(const struct terminal *terminal, const json_t *group, usec_t now,
                             bool last_shown)
{
    const json_t *death = last_shown ? NULL : latest_death(json_object_get(group, "workers"));
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

/* A running group may still run its old program after a reload. */
static void show_behind_line(const struct terminal *terminal, const json_t *group)
{
    const char *name = field_text(group, "name");

    if (json_is_true(json_object_get(group, "behind")))
        terminal_print(terminal,
                       "    Reload: " YELLOW "the new program did not come up" PLAIN
                       ", workers go on with the old one; see 'troupectl deaths %s', mend it and "
                       "reload again",
                       SAFE(name));
}

/* Warns about limits that have no effect, since somebody relies on them. */
static void show_limits_line(const struct terminal *terminal, const json_t *group)
{
    if (field_has(group, "no_effect"))
        terminal_print(
            terminal, "    Limits: " YELLOW "%s" PLAIN " without effect here, see 'troupectl info'",
            SAFE(field_text(group, "no_effect")));
}

static void show_failed_line(const struct terminal *terminal, const json_t *group,
                             const struct pool *pool)
{
    bool failed = false;

    for (size_t i = 0; i < pool->n_entries; i++)
        failed |= field_is(pool->entries[i].worker, "state", "failed");
    if (failed)
        terminal_print(terminal, "            when that is mended: troupectl reset %s",
                       SAFE(field_text(group, "name")));
}

/* ---- lines about workers ---- */

static void add_state_cell(struct table *table, const json_t *worker, bool service, usec_t now)
{
    const char *state = field_text(worker, "state"), *color = show_state_color(state);
    usec_t since = field_usec(worker, "since_at"), restart_at = field_usec(worker, "restart_at");

    if (strcmp(state, "backoff") == 0 && restart_at > 0)
        table_add(table, "%srestarts in %s" PLAIN, color, SPAN(usec_sub(restart_at, now)));
    else if (since > 0 && !field_has(worker, "job"))
        table_add(table, "%s%s" PLAIN " for %s", color, pool_state_name(state, service),
                  SPAN(usec_sub(now, since)));
    else
        table_add(table, "%s%s" PLAIN, color, pool_state_name(state, service));
}

static void write_job(FILE *file, const char **separator, const json_t *worker, usec_t now)
{
    usec_t since = field_usec(worker, "job_since_at");
    char published[128];

    if (field_has(worker, "job")) {
        fprintf(file, "%sjob %s", *separator, SAFE(field_text(worker, "job")));
        if (since > 0)
            fprintf(file, " for %s", SPAN(usec_sub(now, since)));
        *separator = ", ";
    }
    if (field_has(worker, "status")) {
        fprintf(file, "%s%s", *separator, SAFE(field_text(worker, "status")));
        *separator = ", ";
    }
    if (field_has(worker, "published") && field_has(worker, "job") &&
        field_is(json_object_get(worker, "published"), "encoding", "utf8")) {
        fprintf(file, "%s\"%s\"", *separator,
                format_safe(published, sizeof(published),
                            field_text(json_object_get(worker, "published"), "data")));
        *separator = ", ";
    }
}

static void add_remarks_cell(struct table *table, const json_t *worker, usec_t now)
{
    const json_t *death = json_object_get(worker, "last_death");
    _cleanup_free_ char *text = NULL;
    const char *separator = "";
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (!file) {
        table->error = -ENOMEM;
        return;
    }
    if (field_has(worker, "replacement")) {
        fprintf(file, "%s", SAFE(field_text(worker, "replacement")));
        separator = ", ";
    }
    write_job(file, &separator, worker, now);
    if (pool_is_failure(death))
        fprintf(file, "%s%s %s", separator, SAFE(field_text(death, "detail")),
                AGO(now, field_usec(death, "at")));
    if (fclose(file) == 0)
        table_add(table, "%s", text);
}

static void add_worker(struct table *table, const struct entry *entry, bool service, usec_t now)
{
    const json_t *worker = entry->worker, *death = json_object_get(worker, "last_death");
    const char *state = field_text(worker, "state");
    uint64_t restarts = field_count(worker, "restarts");
    char line[1024];

    table_add(table, "%s%s" PLAIN " %s", show_state_color(state), show_state_dot(state),
              SAFE(field_text(worker, "name")));
    add_state_cell(table, worker, service, now);
    if (field_has(worker, "pid"))
        table_add(table, "pid %lld", (long long)field_int(worker, "pid"));
    else
        table_add(table, "%s", "");
    if (restarts > 0)
        table_add(table, "%s restart%s", COUNT(restarts), plural(restarts));
    else
        table_add(table, "%s", "");
    add_remarks_cell(table, worker, now);
    if (entry->rank <= RANK_DIED_RECENTLY && pool_is_failure(death) &&
        *show_last_line(line, sizeof(line), field_text(death, "stderr")))
        table_note(table, "     " DIM "│" PLAIN " %s", line);
}

static void show_workers(const struct terminal *terminal, struct pool *pool, usec_t now, bool all)
{
    size_t n = all ? pool->n_entries : pool_notable(pool);
    struct table table;

    table_init(&table, 5, "   ");
    for (size_t i = 0; i < n; i++)
        add_worker(&table, &pool->entries[i], pool->service, now);
    table_print(&table, terminal);
    table_deinit(&table);
    if (n > 0 && n < pool->n_entries) {
        _cleanup_free_ char *rest = pool_tally(pool, n);

        terminal_print(terminal, "   " DIM "and %s more:" PLAIN " %s", COUNT(pool->n_entries - n),
                       rest ? rest : "");
    }
}

static void show_pool(const struct terminal *terminal, const json_t *group, usec_t now, bool all)
{
    struct pool pool;
    bool last_shown;

    if (pool_init(&pool, group, now) < 0)
        return;
    show_title(terminal, group, &pool, now);
    show_workers_line(terminal, group, &pool);
    if (!pool.service) {
        show_queue_line(terminal, group, now);
        show_jobs_line(terminal, group);
        show_latency_line(terminal, group);
    }
    last_shown = show_last(terminal, group, &pool, now);
    show_deaths_line(terminal, group, now, last_shown);
    show_failed_line(terminal, group, &pool);
    show_behind_line(terminal, group);
    show_limits_line(terminal, group);
    if (field_has(group, "cells"))
        show_cells(terminal, group, now, all);
    else
        show_workers(terminal, &pool, now, all);
    pool_deinit(&pool);
}

void show_group(const struct terminal *terminal, const json_t *group, usec_t now, bool all)
{
    json_t *whole = cells_merge(group);

    if (whole)
        show_pool(terminal, whole, now, all);
    json_decref(whole);
}

void show_cell(const struct terminal *terminal, const json_t *group, const json_t *cell, usec_t now,
               bool all)
{
    json_t *alone = cells_as_group(group, cell);

    if (alone)
        show_pool(terminal, alone, now, all);
    json_decref(alone);
}
