/* SPDX-License-Identifier: MIT */
#pragma once

/* Jobs that wait for other jobs, and batches, as the rest of the supervisor sees them. */

#include "supervisor/job/job-ties.h"

extern const struct job_ties_handler CELL_TIES;

/* What identifies the job in ties. */
int64_t cell_tie_key(const struct job *job);

/* Closes a live batch. Returns 0, or CELL_CANCEL_E_WAIT: await that with durable_job_await(). */
int cell_close_batch(struct job *job);
