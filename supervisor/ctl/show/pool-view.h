/* SPDX-License-Identifier: MIT */
#pragma once

/* The workers of a group, sorted by how much attention they need. `now` is the wall clock. */

#include "shared/base/clock.h"
#include "supervisor/ctl/text/format.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Workers that need most attention come first. */
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

struct pool_view {
    struct entry *entries;
    size_t n_entries;
    bool service;
};

/*
 * Lists the workers in the order of their slots. `group` must outlive the pool. Returns 0 or
 * -ENOMEM.
 */
int pool_init(struct pool_view *pool, const json_t *group, usec_t now);
void pool_deinit(struct pool_view *pool);

/*
 * Returns how many of the first entries to show. A small group is shown whole, in order. A large
 * group is sorted, and only workers in trouble and those with the longest running jobs are shown.
 */
size_t pool_notable(struct pool_view *pool);

/* Summarises the entries from `first` on, with marks: "12 busy, 2 idle". */
void pool_tally(const struct pool_view *pool, size_t first, struct joined *ret);

/* The number of workers of which `is` holds, without spares. */
typedef bool (*pool_is_fn)(const json_t *worker);
size_t pool_count(const struct pool_view *pool, pool_is_fn is);
/* The number of workers in that state, without spares. */
size_t pool_in_state(const struct pool_view *pool, const char *state);

/* A worker that could not be started, and waits or is given up, borrowed, or NULL. Its member
 * "status" says why. */
const json_t *pool_unstarted(const struct pool_view *pool);

/* The last unexpected death of one of the workers, borrowed, or NULL. */
const json_t *pool_latest_death(const struct pool_view *pool);

/* Whether the worker is ready for its work; whether it is stopped or has failed. */
bool pool_is_up(const json_t *worker);
bool pool_is_down(const json_t *worker);

/* Whether the death was unexpected. */
bool pool_is_failure(const json_t *death);

/* Whether the worker is a spare, which does not count towards the size of the pool. */
bool pool_is_spare(const json_t *worker);

/* The name of a state. An "idle" service is called "up". */
const char *pool_state_name(const char *state, bool service);

/* ---- cells, which are converted to the form of a group ---- */

/*
 * The cells in the status of a group with Cells=by-key. A cell is converted to the form of a group,
 * so that the same code shows both.
 */

/*
 * A copy of the group with the workers of all its cells; `size` is the sum of their sizes. For a
 * group without cells, a plain copy. NULL when out of memory.
 */
json_t *cells_merge(const json_t *group);

/* The cell as a group called "group/key". NULL when out of memory. */
json_t *cells_as_group(const json_t *group, const json_t *cell);

/* The cell with the name `target` ("group/key"), borrowed, or NULL. */
const json_t *cells_find(const json_t *group, const char *target);
