/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Groups, cells and workers of GetStatus with further members, which the patterns in show-group.c
 * need. `now` is the wall clock. Functions return new references, or NULL when out of memory.
 */

#include "shared/base/clock.h"
#include <jansson.h>
#include <stdbool.h>

/*
 * A group with the workers of all its cells:
 *   shown             its state, or "cannot start" if something that its configuration names is
 *                     missing
 *   look              `shown`, or "failing" if only some cells are
 *   in_trouble        it is degraded, failing or failed
 *   some_cells_fail   while the group as a whole is running or paused
 *   tally             the numbers of workers by state, spares that stand by as "spare"
 *   members_are       likewise, without spares; and "up", "there" (neither stopped nor failed),
 *                     "halted" (stopped or stopping), "never_ready"
 *   short_of_workers  fewer are up than `size`
 *   starting_since    of the first worker that is starting
 *   unstarted         a worker that could not be started; its `status` says why
 *   last              the last unexpected death
 *   left, dead_percent, waits_long
 */
json_t *view_group(const json_t *group, usec_t now);

/* A cell as a group called "group/key". */
json_t *view_cell(const json_t *group, const json_t *cell, usec_t now);

/*
 * A worker of a group:
 *   shown     its state; "up" for an idle service
 *   group     the group; takes_jobs: it is not a service
 *   failure   its last death, if that was unexpected
 *   notable   it is neither up nor stopped, or died within the last minute
 */
json_t *view_worker(const json_t *group, const json_t *worker, usec_t now);

/* The cell with the name `target` ("group/key"), borrowed, or NULL. */
const json_t *view_find_cell(const json_t *group, const char *target);

/* Whether a worker is ready for its work. */
bool view_is_up(const json_t *worker);
/* Returns the state of a group, cell or worker in the words of the page and of status; borrowed. */
const char *view_state(const json_t *item);

/* Whether a group or cell is running or paused, and all its cells are well. */
bool view_is_well(const json_t *group);
