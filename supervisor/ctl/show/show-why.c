/* SPDX-License-Identifier: MIT */
/* Explains why a group is in trouble: the end of its title, and a line about its last failure. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <inttypes.h>
#include <string.h>

static bool is_well(const json_t *group)
{
    return field_is(group, "state", "running") || field_is(group, "state", "paused");
}

bool show_has_failing_cells(const json_t *group)
{
    return is_well(group) && field_count(group, "cells_failing") > 0;
}

static void add_failing_cells(struct joined *why, const json_t *group)
{
    const uint64_t n = field_count(group, "cells_failing");

    joined_add(why, "%s of %s cells failing (%s%s)", COUNT(n),
               COUNT(field_count(group, "cells_total")), SAFE(field_text(group, "failing_cell")),
               n > 1 ? ", …" : "");
}

const char *show_group_state(const json_t *group)
{
    return field_has(group, "fault") && field_is(group, "state", "failed")
               ? "cannot start"
               : field_text(group, "state");
}

static void add_failing(struct joined *why, const json_t *group, usec_t now)
{
    uint64_t n = field_count(group, "last_jobs"), dead = field_count(group, "last_jobs_dead");

    joined_add(why, "%" PRIu64 " %% of the last %s jobs dead (since %s)",
               n > 0 ? dead * 100 / n : 0, COUNT(n),
               CLOCK(now, field_usec(group, "failing_since_at")));
}

static bool never_gets_ready(const json_t *worker)
{
    return field_is(worker, "state", "starting") &&
           field_is(json_object_get(worker, "last_death"), "cause", "start_timeout");
}

static bool is_there(const json_t *worker)
{
    return !pool_is_down(worker);
}

static void add_count(struct joined *why, size_t n, const char *text)
{
    if (n > 0)
        joined_add(why, "%s %s", COUNT(n), text);
}

static void add_degraded(struct joined *why, const json_t *group)
{
    const size_t never = pool_count(group, never_gets_ready);

    if (field_true(group, "behind"))
        joined_add(why, "the new program did not come up%s",
                   field_is(group, "type", "actor") ? ", the old one continues" : "");
    add_count(why, pool_in_state(group, "failed"), "failed");
    add_count(why, never, never == 1 ? "does not become ready" : "do not become ready");
    add_count(why, pool_in_state(group, "backoff"), "to be restarted later");
    add_count(why, pool_in_state(group, "stopped") + pool_in_state(group, "stopping"), "stopped");
}

/* For how long the first worker has been starting. */
static usec_t longest_start(const json_t *group, usec_t now)
{
    const json_t *workers = json_object_get(group, "workers");
    usec_t since = now;

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);
        usec_t at = field_usec(worker, "since_at");

        if (field_is(worker, "state", "starting") && at > 0 && at < since)
            since = at;
    }
    return usec_sub(now, since);
}

static void add_starting(struct joined *why, const json_t *group, usec_t now)
{
    const usec_t waits = longest_start(group, now);

    if (pool_count(group, is_there) == 0) {
        joined_add(why, "waits for the groups of After=");
        return;
    }
    joined_add(why, "%s of %s up", COUNT(pool_count(group, pool_is_up)),
               COUNT(field_count(group, "size")));
    if (waits > 0)
        joined_add(why, "not ready for %s", SPAN(waits));
}

void show_why(struct joined *why, const json_t *group, usec_t now)
{
    const size_t size = json_array_size(json_object_get(group, "workers"));
    const char *state = field_text(group, "state");
    const size_t failed = pool_in_state(group, "failed");
    uint64_t left = field_count(group, "queued") + field_count(group, "running") +
                    field_count(group, "waiting");

    if (field_has(group, "fault"))
        joined_add(why, "%s%s",
                   strcmp(state, "failed") == 0 ? "" : "still runs its previous configuration: ",
                   SAFE(field_text(group, "fault")));
    else if (strcmp(state, "failing") == 0)
        add_failing(why, group, now);
    else if (field_has(group, "store_problem"))
        joined_add(why, "accepts no jobs: %s", SAFE(field_text(group, "store_problem")));
    else if (strcmp(state, "failed") == 0)
        joined_add(why, "%s worker%s given up", COUNT(failed), plural(failed));
    else if (strcmp(state, "degraded") == 0)
        add_degraded(why, group);
    else if (strcmp(state, "starting") == 0)
        add_starting(why, group, now);
    else if (strcmp(state, "stopping") == 0)
        joined_add(why, "%s of %s worker%s not ended yet", COUNT(pool_count(group, is_there)),
                   COUNT(size), plural(size));
    else if (show_has_failing_cells(group))
        add_failing_cells(why, group);
    else if (field_true(group, "restoring"))
        joined_add(why, "reads its jobs from disk, which new ones wait for");
    else if (field_true(group, "drained"))
        joined_add(why, "drained: nothing runs, and nothing begins until it is resumed");
    else if (field_has(group, "drained") && strcmp(state, "draining") == 0)
        joined_add(why, "takes no new jobs, %s job%s left", COUNT(left), plural(left));
    else if (strcmp(state, "draining") == 0)
        joined_add(why, "removed by a reload, %s job%s left", COUNT(left), plural(left));
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

bool show_last(const struct terminal *terminal, const json_t *group, usec_t now)
{
    const json_t *death = pool_latest_death(group), *dead = json_object_get(group, "last_dead");
    const json_t *unstarted = pool_unstarted(group);

    if (!field_is(group, "state", "failing") && !field_is(group, "state", "failed") &&
        !field_is(group, "state", "degraded"))
        return false;
    if (unstarted) {
        terminal_print(terminal, "      Last: %s (%s)", SAFE(field_text(unstarted, "status")),
                       SAFE(field_text(unstarted, "name")));
        return true;
    }
    /* The death of a dead job's last attempt says more than the dead job. */
    if (death && (!dead || strcmp(field_text(death, "job"), field_text(dead, "job")) == 0 ||
                  field_usec(death, "at") >= field_usec(dead, "at"))) {
        show_last_death(terminal, group, death, now);
        return true;
    }
    if (!dead)
        return false;
    show_last_dead(terminal, group, dead, now);
    return true;
}
