/* SPDX-License-Identifier: MIT */
#pragma once

/* The workers of a group, and its cells. `now` is the wall clock. */

#include "shared/base/clock.h"
#include "supervisor/ctl/text/format.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether the worker needs attention: it is neither up nor stopped, or died within the last minute.
 */
bool pool_is_notable(const json_t *worker, usec_t now);

/* Summarises the workers, with marks: "12 busy, 2 idle". */
void pool_tally(const json_t *group, struct joined *ret);

/* The number of workers of which `is` holds, without spares. */
typedef bool (*pool_is_fn)(const json_t *worker);
size_t pool_count(const json_t *group, pool_is_fn is);
/* The number of workers in that state, without spares. */
size_t pool_in_state(const json_t *group, const char *state);

/* A worker that could not be started, and waits or is given up, borrowed, or NULL. Its member
 * "status" says why. */
const json_t *pool_unstarted(const json_t *group);

/* The last unexpected death of one of the workers, borrowed, or NULL. */
const json_t *pool_latest_death(const json_t *group);

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
