/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/show/pool-view.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include <string.h>

/* Groups of up to this size are shown with all workers. */
#define SMALL_POOL 6
/*
 * For larger groups: how many workers that need attention, and how many of the longest running
 * jobs, are shown.
 */
#define NOTABLE_MAX 10
#define LONGEST_MAX 3
/* A more recent death is shown even if the worker is well again. */
#define RECENT_DEATH (60 * USEC_PER_SEC)

static const char *const rank_states[_RANK_N] = {
    [RANK_FAILED] = "failed",     [RANK_KILLING] = "killing",   [RANK_BACKOFF] = "backoff",
    [RANK_STOPPING] = "stopping", [RANK_STARTING] = "starting", [RANK_BUSY] = "busy",
    [RANK_IDLE] = "idle",         [RANK_STOPPED] = "stopped",
};

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

static enum rank rank_of(const json_t *worker, usec_t now)
{
    const json_t *death = json_object_get(worker, "last_death");
    const char *state = field_text(worker, "state");
    enum rank rank = RANK_STOPPED;

    for (enum rank i = 0; i < _RANK_N; i++)
        if (rank_states[i] && strcmp(rank_states[i], state) == 0)
            rank = i;
    if ((rank == RANK_BUSY || rank == RANK_IDLE) && pool_is_failure(death) &&
        usec_sub(now, field_usec(death, "at")) < RECENT_DEATH)
        return RANK_DIED_RECENTLY;
    return rank;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

int pool_init(struct pool_view *pool, const json_t *group, usec_t now)
{
    const json_t *workers = json_object_get(group, "workers");
    size_t n = json_array_size(workers);

    *pool = (struct pool_view){.entries = calloc(n + 1, sizeof(*pool->entries)),
                               .n_entries = n,
                               .service = field_is(group, "type", "service")};
    if (!pool->entries)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        struct entry *entry = &pool->entries[i];

        entry->worker = json_array_get(workers, i);
        entry->rank = rank_of(entry->worker, now);
        entry->order = entry->rank == RANK_BUSY ? field_usec(entry->worker, "job_since_at") : i;
    }
    return 0;
}

void pool_deinit(struct pool_view *pool)
{
    free(pool->entries);
    *pool = (struct pool_view){0};
}

size_t pool_notable(struct pool_view *pool)
{
    size_t n = 0, busy = 0;

    if (pool->n_entries <= SMALL_POOL)
        return pool->n_entries;
    qsort(pool->entries, pool->n_entries, sizeof(*pool->entries), compare_entries);
    while (n < pool->n_entries && n < NOTABLE_MAX && pool->entries[n].rank < RANK_BUSY)
        n++;
    /* If not all workers in trouble fit, no healthy ones are shown. */
    if (n == NOTABLE_MAX)
        return n;
    while (n < pool->n_entries && pool->entries[n].rank == RANK_BUSY && busy < LONGEST_MAX) {
        n++;
        busy++;
    }
    return n;
}

const char *pool_state_name(const char *state, bool service)
{
    return service && strcmp(state, "idle") == 0 ? "up" : state;
}

void pool_tally(const struct pool_view *pool, size_t first, struct joined *ret)
{
    for (size_t word = 0; word < ELEMENTS(tally_words); word++) {
        size_t n = 0;

        for (size_t i = first; i < pool->n_entries; i++)
            n += strcmp(state_of(pool->entries[i].worker), tally_words[word].state) == 0;
        if (n > 0)
            joined_add(ret, "%s%s %s" PLAIN, tally_words[word].color, COUNT(n),
                       pool_state_name(tally_words[word].text, pool->service));
    }
}

size_t pool_count(const struct pool_view *pool, pool_is_fn is)
{
    size_t n = 0;

    for (size_t i = 0; i < pool->n_entries; i++)
        n += !pool_is_spare(pool->entries[i].worker) && is(pool->entries[i].worker);
    return n;
}

size_t pool_in_state(const struct pool_view *pool, const char *state)
{
    size_t n = 0;

    for (size_t i = 0; i < pool->n_entries; i++)
        n += !pool_is_spare(pool->entries[i].worker) &&
             field_is(pool->entries[i].worker, "state", state);
    return n;
}

const json_t *pool_unstarted(const struct pool_view *pool)
{
    for (size_t i = 0; i < pool->n_entries; i++) {
        const json_t *worker = pool->entries[i].worker;

        if (field_has(worker, "status") &&
            (field_is(worker, "state", "backoff") || field_is(worker, "state", "failed")))
            return worker;
    }
    return NULL;
}

const json_t *pool_latest_death(const struct pool_view *pool)
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
