/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The cells of a group with Cells=by-key, as its status tells of them. A cell and a group with one
 * look the same, so what shows groups shows cells.
 */

#include <jansson.h>

/* A copy of the group as if the workers of all its cells were its own; `size` is all they should
 * be. Of a group without cells just a copy. NULL when out of memory. */
json_t *cells_merge(const json_t *group);

/* The cell as a group called "group/key". NULL when out of memory. */
json_t *cells_as_group(const json_t *group, const json_t *cell);

/* The cell that `target` ("group/key") names; NULL if it is none of these. Borrowed. */
const json_t *cells_find(const json_t *group, const char *target);
