/* SPDX-License-Identifier: MIT */
#pragma once

/* Fills in the rows of jobs. What the rows point to belongs to the job. */

#include "supervisor/job/job.h"
#include "supervisor/store/ended-rows.h"
#include "supervisor/store/job-rows.h"

/* Fills in what never changes of a live job, but neither the number nor the payload. `group` is
 * borrowed. */
void job_to_row(struct job_row *row, const struct job *job, const char *group);
/* Fills in what changes. */
void job_progress_to_row(struct job_row *row, const struct job *job);
/* Takes over why the job is to be cancelled, and by whom. */
void job_cancel_from_row(struct job *job, const struct job_row *row);

/* Fills in all but the number, the group, the key and the name. `end`: how the job has ended, which
 * its state may not say yet. */
void job_result_to_row(struct ended_row *row, const struct job *job, enum job_state end);
