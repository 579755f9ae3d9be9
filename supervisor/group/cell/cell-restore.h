/* SPDX-License-Identifier: MIT */
#pragma once

/* Makes jobs of rows that were read. */

struct cell;
struct identity_row;
struct job;
struct loaded_job;

/* `identity`: of a job that is not durable, whose handle is free; NULL = the job is durable. */

/* Makes a queued job, in no list, of a row that waits for a worker. Takes over its payload. Returns
 * 0, -EEXIST if another job has its id, -EBADMSG, or -ENOMEM. */
int cell_restore_job(struct cell *cell, struct loaded_job *loaded,
                     const struct identity_row *identity, struct job **ret);

/* Completes a job that a worker of the last supervisor has, or had, in hand. Returns 0, -EBADMSG or
 * -ENOMEM. */
int cell_complete_job(struct cell *cell, struct job *job, struct loaded_job *loaded);

/* Makes a live job of any row, and continues where it stood. Returns as
 * cell_restore_job(). */
int cell_resume_job(struct cell *cell, struct loaded_job *loaded,
                    const struct identity_row *identity);
