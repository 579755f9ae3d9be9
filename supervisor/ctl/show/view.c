/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/show/view.h"

#include "supervisor/ctl/text/field.h"
#include <string.h>

/* A more recent death is shown even if the worker is well again. */
#define RECENT_DEATH (60 * USEC_PER_SEC)
/* A job that has waited longer is highlighted. */
#define LONG_WAIT (60 * USEC_PER_SEC)

static bool is_one_of(const json_t *object, const char *name, const char *const *words)
{
    while (*words && !field_is(object, name, *words))
        words++;
    return *words;
}
#define STATE_IS_ONE_OF(object, ...)                                                               \
    is_one_of(object, "state", (const char *const[]){__VA_ARGS__, NULL})

/* Takes ownership of the value. Without memory the member is not set. */
static void set(json_t *object, const char *name, json_t *value)
{
    (void)json_object_set_new(object, name, value);
}

static void set_if(json_t *object, const char *name, bool value)
{
    if (value)
        set(object, name, json_true());
}

/* ---- workers ---- */

bool view_is_up(const json_t *worker)
{
    return STATE_IS_ONE_OF(worker, "idle", "busy");
}

json_t *view_worker(const json_t *group, const json_t *worker, usec_t now)
{
    const bool service = field_is(group, "type", "service");
    json_t *view = json_copy((json_t *)(uintptr_t)worker);
    json_t *death = json_object_get(view, "last_death");
    const bool failed = json_is_object(death) && !field_is(death, "cause", "stop");
    const bool recent = failed && usec_sub(now, field_usec(death, "at")) < RECENT_DEATH;

    set(view, "shown",
        json_string(service && field_is(worker, "state", "idle") ? "up"
                                                                 : field_text(worker, "state")));
    (void)json_object_set(view, "group", (json_t *)(uintptr_t)group);
    set_if(view, "takes_jobs", !service);
    if (failed)
        (void)json_object_set(view, "failure", death);
    set_if(view, "notable", view_is_up(worker) ? recent : !field_is(worker, "state", "stopped"));
    return view;
}

static void count(json_t *counts, const char *name, bool matches)
{
    if (matches)
        set(counts, name, json_integer(field_int(counts, name) + 1));
}

static void count_worker(json_t *tally, json_t *members, const json_t *worker)
{
    const bool spare = field_is(worker, "replacement", "spare");
    const char *state = field_text(worker, "state");

    count(tally, spare && strcmp(state, "idle") == 0 ? "spare" : state, true);
    if (spare)
        return;
    count(members, state, true);
    count(members, "up", view_is_up(worker));
    count(members, "there", !STATE_IS_ONE_OF(worker, "stopped", "failed"));
    count(members, "halted", STATE_IS_ONE_OF(worker, "stopped", "stopping"));
    count(members, "never_ready",
          strcmp(state, "starting") == 0 &&
              field_is(json_object_get(worker, "last_death"), "cause", "start_timeout"));
}

/* Keeps what a group shows of single workers. */
static void note_worker(json_t *group, json_t *worker)
{
    json_t *failure = json_object_get(worker, "failure");
    const int64_t since = field_int(worker, "since_at"), first = field_int(group, "starting_since");

    if (field_is(worker, "state", "starting") && since > 0 && (first == 0 || since < first))
        set(group, "starting_since", json_integer(since));
    if (!json_object_get(group, "unstarted") && field_has(worker, "status") &&
        STATE_IS_ONE_OF(worker, "backoff", "failed"))
        (void)json_object_set(group, "unstarted", worker);
    if (failure && (!json_object_get(group, "last") ||
                    field_usec(failure, "at") > field_usec(json_object_get(group, "last"), "at")))
        (void)json_object_set(group, "last", failure);
}

/* ---- groups ---- */

static bool some_cells_fail(const json_t *group)
{
    return STATE_IS_ONE_OF(group, "running", "paused") && field_count(group, "cells_failing") > 0;
}

bool view_is_well(const json_t *group)
{
    return STATE_IS_ONE_OF(group, "running", "paused") && !some_cells_fail(group);
}

/* Adds copies of the workers of a group or cell to those of the view. */
static void add_workers(json_t *view, const json_t *group, const json_t *owner, usec_t now)
{
    const json_t *workers = json_object_get(owner, "workers");

    for (size_t i = 0; i < json_array_size(workers); i++) {
        json_t *worker = view_worker(group, json_array_get(workers, i), now);

        count_worker(json_object_get(view, "tally"), json_object_get(view, "members_are"), worker);
        note_worker(view, worker);
        (void)json_array_append_new(json_object_get(view, "workers"), worker);
    }
}

const char *view_state(const json_t *item)
{
    return field_has(item, "fault") && field_is(item, "state", "failed")
               ? "cannot start"
               : field_text(item, "state");
}

static void add_state(json_t *view, usec_t now)
{
    const char *shown = view_state(view);
    const uint64_t n_jobs = field_count(view, "last_jobs");
    const usec_t oldest = field_usec(view, "oldest_queued_at");

    set(view, "shown", json_string(shown));
    set(view, "look", json_string(some_cells_fail(view) ? "failing" : shown));
    set_if(view, "in_trouble", STATE_IS_ONE_OF(view, "degraded", "failing", "failed"));
    set_if(view, "some_cells_fail", some_cells_fail(view));
    set(view, "left",
        json_integer(field_int(view, "queued") + field_int(view, "running") +
                     field_int(view, "waiting") + field_int(view, "pending")));
    set(view, "dead_percent",
        json_integer(n_jobs > 0 ? field_int(view, "last_jobs_dead") * 100 / (json_int_t)n_jobs
                                : 0));
    set_if(view, "waits_long", oldest > 0 && usec_sub(now, oldest) > LONG_WAIT);
}

json_t *view_group(const json_t *group, usec_t now)
{
    const json_t *cells = json_object_get(group, "cells");
    json_t *view = json_copy((json_t *)(uintptr_t)group);
    json_int_t size = 0;

    set(view, "tally", json_object());
    set(view, "members_are", json_pack("{s:i, s:i}", "up", 0, "there", 0));
    set(view, "workers", json_array());
    add_workers(view, group, group, now);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        size += field_int(json_array_get(cells, i), "size");
        add_workers(view, group, json_array_get(cells, i), now);
    }
    if (cells)
        set(view, "size", json_integer(size));
    add_state(view, now);
    set_if(view, "short_of_workers",
           field_int(json_object_get(view, "members_are"), "up") < field_int(view, "size"));
    return view;
}

json_t *view_cell(const json_t *group, const json_t *cell, usec_t now)
{
    json_auto_t *alone = json_copy((json_t *)(uintptr_t)cell);

    set(alone, "name", json_sprintf("%s/%s", field_text(group, "name"), field_text(cell, "key")));
    set(alone, "description", json_string(field_text(group, "description")));
    set(alone, "type", json_string(field_text(group, "type")));
    return view_group(alone, now);
}

const json_t *view_find_cell(const json_t *group, const char *target)
{
    const json_t *cells = json_object_get(group, "cells");
    const char *key = strchr(target, '/');

    for (size_t i = 0; key && i < json_array_size(cells); i++)
        if (field_is(json_array_get(cells, i), "key", key + 1))
            return json_array_get(cells, i);
    return NULL;
}
