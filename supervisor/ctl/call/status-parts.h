/* SPDX-License-Identifier: MIT */
#pragma once

/* Joins an answer that comes in several replies. */

#include <jansson.h>

struct invocation;

/*
 * Adds the groups of one reply of GetStatus to those of earlier replies. A group or cell that
 * continues from the previous reply gets further cells and workers, and its newer numbers. `part`
 * is borrowed. Returns 0 or -ENOMEM.
 */
int parts_add_groups(json_t *groups, const json_t *part);

/*
 * Calls GetStatus for `target` (NULL = all). The caller owns `*ret`: {"groups": …}. Returns an exit
 * status.
 */
int parts_of_status(struct invocation *invocation, const char *target, json_t **ret);
