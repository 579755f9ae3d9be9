/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The durable jobs of a cell that wait on disk only. The queue holds the next CELL_JOBS_IN_MEMORY
 * jobs, or those that take half of QueueMemoryMax=; the backlog holds the numbers of those behind
 * them, and the next ones are read when half of the queue is left. While the group is restored, new
 * jobs wait behind all that may still be read.
 *
 * A job in the backlog is parked as long as it is in memory for another reason: somebody waits for
 * it, or it is being written.
 */

#include "supervisor/store/job-load.h"
#include <stdbool.h>
#include <stdint.h>

struct cell;
struct job;

#define CELL_JOBS_IN_MEMORY 1000

/* Puts a durable job into the backlog, if its place is behind others that are there, or that have
 * not been read yet because the group is being restored. `first`: before those of its priority.
 * Returns false if it belongs in the queue. */
bool cell_backlog_add(struct cell *cell, struct job *job, bool first);

/* Adds the number of a job that counts as on disk already. Returns 0 or -ENOMEM. */
int cell_backlog_append(struct cell *cell, unsigned priority, int64_t number);
/* Like cell_backlog_add(), but for a job that is not in memory, of a group that is being restored.
 * Returns 0 or -ENOMEM. */
int cell_backlog_add_number(struct cell *cell, unsigned priority, int64_t number);

/* Whether older jobs of its cell may still be read from disk. */
bool cell_backlog_awaits_restore(const struct job *job);
/* The group has been restored: jobs that came during that follow those that were read. */
void cell_backlog_end_restore(struct cell *cell);

/* Takes out a parked job that ends or changes, with its number: a closed cell drops its numbers,
 * and one that is being read is removed when it has been. */
void cell_backlog_forget(struct cell *cell, struct job *job);

/* Called at the end of a turn, before jobs are handed out: moves jobs that do not belong in the
 * queue to the backlog. */
void cell_backlog_shorten_queue(struct cell *cell);
/* Called afterwards, if there is a backlog: reads the next jobs, and drops others from memory. */
void cell_backlog_turn(struct cell *cell);

/* Changes of a parked job, or its addition, have been written: the job may be dropped from memory
 * now. */
void cell_backlog_on_written(struct job *job, bool added);

/* Whether a durable job that waits must stay in memory. */
bool cell_is_needed(const struct job *job);
/* Frees a durable job that waits, and of which all is on disk. It is in no list. */
void cell_drop_from_memory(struct cell *cell, struct job *job);

/* Makes a parked or delayed job of a row that was read by its id. Returns 0, CELL_E_MISSING if the
 * cell has no jobs on disk or has left them there, or -ENOMEM. */
int cell_backlog_restore(struct cell *cell, struct loaded_job *loaded, struct job **ret);

/* Returns a parked job; NULL = none. */
struct job *cell_backlog_first_parked(const struct cell *cell);

/* Drops it all from memory, when no job is parked any more: the jobs stay on disk. */
void cell_backlog_leave(struct cell *cell);
