/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between durable-job*.c. */

#include "supervisor/store/durable-job.h"

/* ---- durable-job-write.c ---- */

/* The store_task.apply of a durable job: writes what is `given`. The outcome of a job does not
 * change once its end is noted. */
int durable_write(struct store_task *task, struct database *database);

/* ---- durable-job-attempt.c ---- */

/* The end of its attempt is written, or counts no more. */
void durable_forget_attempt(struct durable_job *durable);
