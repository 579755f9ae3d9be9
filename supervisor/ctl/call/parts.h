/* SPDX-License-Identifier: MIT */
#pragma once

/* Answers that come in several replies, made into the one that they are parts of. */

#include <jansson.h>

struct invocation;

/*
 * Adds the groups of one reply of GetStatus to those of the replies before: a group, or a cell,
 * that the last one was not through with goes on with more cells and workers; its numbers are the
 * later ones. `part` is borrowed. 0 or -ENOMEM.
 */
int parts_add_groups(json_t *groups, const json_t *part);

/* GetStatus of `target` (NULL = all): {"groups": …}, the caller's. An exit status. */
int parts_of_status(struct invocation *invocation, const char *target, json_t **ret);
