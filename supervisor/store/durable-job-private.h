/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between durable-job*.c. */

#include "supervisor/store/durable-job.h"

/* ---- durable-job-write.c ---- */

/* The store_task.apply of a durable job: writes what is `given`. The outcome of a job does not
 * change once its end is noted. */
int durable_write(struct store_task *task, struct database *database);
/* Removes all rows of this number. Returns 0 or -errno. */
int durable_remove_rows(struct database *database, int64_t number);

/* ---- durable-job-attempt.c ---- */

/* The end of its attempt is written, or counts no more. */
void durable_forget_attempt(struct durable_job *durable);
