/* SPDX-License-Identifier: MIT */
#pragma once

/* The workers of a group, sorted by how much attention they need. `now` is the wall clock. */

#include "shared/base/clock.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* What needs attention most comes first. */
enum rank {
    RANK_FAILED,
    RANK_KILLING,
    RANK_BACKOFF,
    RANK_STOPPING,
    RANK_STARTING,
    RANK_DIED_RECENTLY,
    RANK_BUSY,
    RANK_IDLE,
    RANK_STOPPED,
    _RANK_N,
};

struct entry {
    const json_t *worker; /* borrowed */
    enum rank rank;
    usec_t order; /* within a rank */
};

struct pool {
    struct entry *entries;
    size_t n_entries;
    bool service;
};

/* In the order of the slots. 0 or -ENOMEM; `group` must outlive it. */
int least_loaded_init(struct pool *pool, const json_t *group, usec_t now);
void pool_deinit(struct pool *pool);

/*
 * How many entries, from the first, are worth a line of their own: all of a small group, which stay
 * in order; of a large one, sorted now, those that are not well and the few whose jobs have been
 * running longest.
 */
size_t pool_notable(struct pool *pool);

/* "12 busy, 2 idle" of the entries from `first` on, with marks; the caller's to free, NULL without
 * memory. */
char *pool_tally(const struct pool *pool, size_t first);

/* A death that was not asked for. */
bool pool_is_failure(const json_t *death);

/* It stands by for a place and has none: not one of those that the pool is to have. */
bool pool_is_spare(const json_t *worker);

/* What a state is called: a service that is "idle" waits for nothing, it is up. */
const char *pool_state_name(const char *state, bool service);
