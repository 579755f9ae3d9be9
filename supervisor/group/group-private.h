/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the parts of a group owe each other: group.c has its life and its configuration,
 * group-cell.c how jobs find their cell and cells come and go, group-size.c how large pools are.
 */

#include "supervisor/group/group.h"

/* Emits an event of the group; the message is its name and the text. */
void group_tell(struct group *group, enum log_level level, const char *type, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

/* The group is removed and its last job has ended: its slots stop. */
void group_drained(struct group *group);

/* ---- group-cell.c ---- */

extern const struct cell_handler GROUP_CELL_HANDLER;

/* ---- group-actor.c ---- */

/* With Cells=by-key. 0 or -ENOMEM. */
int group_new_actor(struct group *group);

/* ---- group-size.c ---- */

/* Room in every cell, or in none. 0 or -ENOMEM. */
int group_reserve(struct group *group, size_t size);

/* To a size that was reserved, of every cell, also those to come. */
void group_set_size(struct group *group, size_t size);
