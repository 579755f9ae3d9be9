/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between group-*.c. */

#include "supervisor/group/group.h"

/* Emits an event of the group; the message is its name and the text. */
void group_tell(struct group *group, enum log_level level, const char *type, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

/* Stops a removed group whose last job has ended. */
void group_drained(struct group *group);
/* Like group_drained(), but only if the group is removed and has no job left. */
void group_review_removal(struct group *group);

/* ---- group-keep.c ---- */

extern const struct record GROUP_KEPT_RECORD; /* what is kept for the next supervisor */

void group_open_kept(struct group *group);
/* Keeps the text of a new configuration: the next supervisor uses it if the files then have a
 * mistake. */
void group_keep_config(struct group *group);
void group_forget_config(struct group *group);
/* Whether the group had limits that were set at run time when the last supervisor ended. */
bool group_kept_limits(const struct group *group);
/* Called after each change of what was asked of the group. */
void group_keep(struct group *group);
/* Restores what the last supervisor kept of the group itself. A group that waits for those of its
 * After= waits on, but its workers run. */
void group_resume(struct group *group);
/* Finds the cell with this key, or makes it without starting it. `*ret` is NULL for a key that no
 * cell of the group can have. Returns 0 or -ENOMEM. */
int group_resume_cell(struct group *group, const char *key, size_t size, struct cell **ret);

/* ---- group-cell.c ---- */

extern const struct cell_handler GROUP_CELL_HANDLER;

/* Makes the actor of a group with Cells=by-key. Returns 0 or -ENOMEM. */
int group_new_actor(struct group *group);
/* Like group_submit(), but the request has its unique key, if any, and there is no conflict. */
int group_submit_to_cell(struct group *group, const struct cell_request *request, struct job **ret);

/* Like group_submit(), but the request has its ties, if any. */
int group_submit_untied(struct group *group, const struct cell_request *request, struct job **ret);

/* ---- group-ties.c ---- */

/* Like group_submit(), but for a job that is tied to others: finds those. */
int group_submit_tied(struct group *group, const struct cell_request *request, struct job **ret);

/* ---- group-search.c ---- */

/* Looks on disk for a job that is not in memory. The request's waiter is called when the search is
 * over, and jobs that it has found stay in memory until group_end_search(). Returns 0 = there is
 * none, CELL_E_WAIT while it is looked for, another CELL_E_*, or -ENOMEM. */
int group_search(const struct group *group, const struct cell_request *request,
                 const struct protocol_id *id);
/* The request was accepted or refused. */
void group_end_search(struct cell_waiter *waiter);

/* ---- group-unique.c ---- */

/* Like group_submit_untied(), but for a job that may have a unique key: it is submitted only if no
 * conflict keeps it from that. */
int group_submit_unique(struct group *group, const struct cell_request *request, struct job **ret);

/* ---- group-pressure.c ---- */

/* Watches for the kinds of pressure that the configuration names. Called after each change of it.
 */
void group_watch_pressure(struct group *group);
void group_unwatch_pressure(struct group *group);

/* ---- group-limits.c ---- */

void group_count_init(struct group *group);
/* Ends the walk over its cells, if there is one. */
void group_count_end(struct group *group);
/* Its limits have changed, or are those of another configuration. */
void group_change_limits(struct group *group, const struct config_group *config);
/* Has all cells look at their jobs. */
void group_wake_cells(struct group *group);

/* ---- group-size.c ---- */

/* Makes slots for a size in this range. Returns 0; or -ENOMEM, without a change. Keyed cells make
 * their slots when they are resized; without memory, they keep their size. */
int group_reserve(struct group *group, struct config_size range);
/* Decides the size of cells without a size of their own: the nearest in this range. */
void group_choose_size(struct group *group, struct config_size range);
/* See struct cell_handler. */
void group_note_size(struct cell *cell);
