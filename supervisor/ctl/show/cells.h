/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The cells in the status of a group with Cells=by-key. A cell is converted to the form of a group,
 * so that the same code shows both.
 */

#include <jansson.h>

/*
 * A copy of the group with the workers of all its cells; `size` is the sum of their sizes. For a
 * group without cells, a plain copy. NULL when out of memory.
 */
json_t *cells_merge(const json_t *group);

/* The cell as a group called "group/key". NULL when out of memory. */
json_t *cells_as_group(const json_t *group, const json_t *cell);

/* The cell with the name `target` ("group/key"), borrowed, or NULL. */
const json_t *cells_find(const json_t *group, const char *target);
