/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A configuration that cannot be used on this machine: its program, user, directory or environment
 * file is missing. A new group is blocked by it: its workers are not started, its jobs wait. A
 * group that runs goes on with the configuration of before. Either way it is tried again, less and
 * less often, and at once when somebody asks; then the group starts, or takes the new
 * configuration.
 */

#include <stdbool.h>

struct config_group;
struct group;
struct group_fault;

/*
 * Begins: `next` is the new configuration of a group that runs, taken over; NULL = that of the
 * group itself has the fault. 0 or -ENOMEM.
 */
int group_fault_begin(struct group *group, struct config_group *next);

/* Ends it, if there is one, and forgets the new configuration. */
void group_fault_end(struct group *group);

/* What is missing; NULL = nothing. */
const char *group_fault_text(const struct group *group);

/* Its workers cannot be started. */
bool group_is_blocked(const struct group *group);

/* Starts what is wanted: its configuration has no fault any more. */
void group_fault_unblock(struct group *group);

/* Tries again at once, if there is a fault; an event tells how it went. */
void group_fault_retry(struct group *group);
bool group_fault_is_tried(const struct group *group);
