/* SPDX-License-Identifier: MIT */
#pragma once

/* Makes jobs of rows that were read. */

#include <stdint.h>

struct cell;
struct durable_jobs;
struct job;
struct loaded_job;
struct saved_job;

/* `saved`: of a job that is not durable, whose handle is free; NULL = the job is durable. */

/* Makes a queued job, in no list, of a row that waits for a worker. Takes over its payload. Returns
 * 0, -EEXIST if another job has its id, -EBADMSG, or -ENOMEM. */
int cell_restore_job(struct cell *cell, struct loaded_job *loaded, const struct saved_job *saved,
                     struct job **ret);

/* Gives a job that a worker of the last supervisor has, or had, in hand its payload and options
 * back. Returns 0 or -EBADMSG. */
int cell_complete_job(struct cell *cell, struct job *job, struct loaded_job *loaded);

/* Makes a live job of any row, and continues where it stood. Returns as
 * cell_restore_job(). */
int cell_resume_job(struct cell *cell, struct loaded_job *loaded, const struct saved_job *saved);

/* Gives the job of a kept result, whose row was read, its attempts back, if an upgrade has handed
 * them over. */
void cell_give_attempts(struct durable_jobs *durable, struct job *job, int64_t number);
