/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/show/pool-view.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include <string.h>

/* A more recent death is shown even if the worker is well again. */
#define RECENT_DEATH (60 * USEC_PER_SEC)

/* The words of the tally, in its order. */
static const struct {
    const char *state;
    const char *text;
    const char *color;
} tally_words[] = {
    {"busy", "busy", ""},
    {"idle", "idle", ""},
    {"spare", "standing by", ""},
    {"starting", "starting", YELLOW},
    {"stopping", "stopping", ""},
    {"killing", "being killed", RED},
    {"backoff", "in backoff", YELLOW},
    {"failed", "failed", RED},
    {"stopped", "stopped", ""},
};

bool pool_is_up(const json_t *worker)
{
    return field_is(worker, "state", "idle") || field_is(worker, "state", "busy");
}

bool pool_is_down(const json_t *worker)
{
    return field_is(worker, "state", "stopped") || field_is(worker, "state", "failed");
}

bool pool_is_failure(const json_t *death)
{
    return json_is_object(death) && !field_is(death, "cause", "stop");
}

bool pool_is_spare(const json_t *worker)
{
    return field_is(worker, "replacement", "spare");
}

/* The state under which the tally counts the worker. */
static const char *state_of(const json_t *worker)
{
    const char *state = field_text(worker, "state");

    return pool_is_spare(worker) && strcmp(state, "idle") == 0 ? "spare" : state;
}

bool pool_is_notable(const json_t *worker, usec_t now)
{
    const json_t *death = json_object_get(worker, "last_death");

    if (!pool_is_up(worker))
        return !field_is(worker, "state", "stopped");
    return pool_is_failure(death) && usec_sub(now, field_usec(death, "at")) < RECENT_DEATH;
}

const char *pool_state_name(const char *state, bool service)
{
    return service && strcmp(state, "idle") == 0 ? "up" : state;
}

static const json_t *workers_of(const json_t *group)
{
    return json_object_get(group, "workers");
}

void pool_tally(const json_t *group, struct joined *ret)
{
    const bool service = field_is(group, "type", "service");
    const json_t *workers = workers_of(group);

    for (size_t word = 0; word < ELEMENTS(tally_words); word++) {
        size_t n = 0;

        for (size_t i = 0; i < json_array_size(workers); i++)
            n += strcmp(state_of(json_array_get(workers, i)), tally_words[word].state) == 0;
        if (n > 0)
            joined_add(ret, "%s%s %s" PLAIN, tally_words[word].color, COUNT(n),
                       pool_state_name(tally_words[word].text, service));
    }
}

size_t pool_count(const json_t *group, pool_is_fn is)
{
    const json_t *workers = workers_of(group);
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(workers); i++)
        n += !pool_is_spare(json_array_get(workers, i)) && is(json_array_get(workers, i));
    return n;
}

size_t pool_in_state(const json_t *group, const char *state)
{
    const json_t *workers = workers_of(group);
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(workers); i++)
        n += !pool_is_spare(json_array_get(workers, i)) &&
             field_is(json_array_get(workers, i), "state", state);
    return n;
}

const json_t *pool_unstarted(const json_t *group)
{
    const json_t *workers = workers_of(group);

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);

        if (field_has(worker, "status") &&
            (field_is(worker, "state", "backoff") || field_is(worker, "state", "failed")))
            return worker;
    }
    return NULL;
}

const json_t *pool_latest_death(const json_t *group)
{
    const json_t *workers = workers_of(group), *latest = NULL;

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *death = json_object_get(json_array_get(workers, i), "last_death");

        if (pool_is_failure(death) &&
            (!latest || field_usec(death, "at") > field_usec(latest, "at")))
            latest = death;
    }
    return latest;
}

/* ---- cells ---- */

json_t *cells_merge(const json_t *group)
{
    const json_t *cells = json_object_get(group, "cells");
    json_t *whole = json_copy((json_t *)(uintptr_t)group), *workers;
    json_int_t size = 0;

    if (!cells)
        return whole;
    workers = json_array();
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, i);

        size += field_int(cell, "size");
        if (workers)
            (void)json_array_extend(workers, json_object_get(cell, "workers"));
    }
    if (!whole || json_object_set_new(whole, "workers", workers) < 0 ||
        json_object_set_new(whole, "size", json_integer(size)) < 0) {
        json_decref(whole);
        return NULL;
    }
    return whole;
}

json_t *cells_as_group(const json_t *group, const json_t *cell)
{
    json_t *alone = json_copy((json_t *)(uintptr_t)cell);
    json_t *names = json_pack(
        "{s:o*, s:s, s:s}", "name",
        json_sprintf("%s/%s", field_text(group, "name"), field_text(cell, "key")), "description",
        field_text(group, "description"), "type", field_text(group, "type"));

    if (!alone || !names || json_object_update(alone, names) < 0) {
        json_decref(alone);
        alone = NULL;
    }
    json_decref(names);
    return alone;
}

const json_t *cells_find(const json_t *group, const char *target)
{
    const json_t *cells = json_object_get(group, "cells");
    const char *key = strchr(target, '/');

    for (size_t i = 0; key && i < json_array_size(cells); i++)
        if (field_is(json_array_get(cells, i), "key", key + 1))
            return json_array_get(cells, i);
    return NULL;
}
