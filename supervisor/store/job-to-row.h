/* SPDX-License-Identifier: MIT */
#pragma once

/* Fills in the rows of jobs, which point to texts and bytes of the job. */

#include "supervisor/job/job-ties.h"
#include "supervisor/store/job-rows.h"

/* Fills in the facts and what never changes of a live job, but neither the number nor the payload.
 * `group` is borrowed. */
void job_to_row(struct job_row *row, const struct job *job, const char *group);
/* Fills in what changes. */
void job_progress_to_row(struct job_row *row, const struct job *job);

/* Fills in the end of a job, and its result in place of the payload. `end`: how the job has ended,
 * which its state may not say yet. */
void job_end_to_row(struct job_row *row, const struct job *job, enum job_state end);

/* A job in the file of an upgrade, with its payload or result. For a durable job, which
 * `row.number` names, it holds the fields that the row in the database lacks. */
struct saved_job {
    struct job_row row;
    uint64_t handle, id_high, id_low;
    uint8_t end;         /* enum job_state; 0 = it has not ended */
    bool payload_lost;   /* as that of the job */
    bool has_checkpoint; /* `row.checkpoint` is one that no row in the database has */
    uint8_t n_attempts;
    struct job_attempt attempts[JOB_ATTEMPTS_KEPT];
};

#define SAVED_JOB_ROW "job"
extern const struct record SAVED_JOB_RECORD;

/* Whether the job has a checkpoint that its row in the database, if any, may lack. */
bool job_lacks_checkpoint_on_disk(const struct job *job);

/* Fills in all but the number. The row points to texts and bytes of the job. Returns 0; or -ENOMEM,
 * only for a job that is not durable: the row lacks what the job waits for. */
int saved_job_fill(struct saved_job *saved, const struct job *job, const char *group);
