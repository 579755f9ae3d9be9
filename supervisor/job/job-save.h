/* SPDX-License-Identifier: MIT */
#pragma once

/* What rows of durable jobs do not have, across an upgrade: how attempts failed, and how the
 * present one stands. */

#include "supervisor/job/job.h"
#include "supervisor/saved/saved-row.h"

#define JOB_ROW "job"

/* Saves it in a row of that kind, if there is anything. Returns 0 or -errno of the saver. */
int job_save(const struct job *job, struct saver *saver);

/* The jobs have been restored, under their handles. A row of a job that is gone is skipped. Returns
 * 0 or -EBADMSG. */
int job_restore_row(const struct job_table *table, struct saved_reader *row);
