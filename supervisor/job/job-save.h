/* SPDX-License-Identifier: MIT */
#pragma once

/* What rows of durable jobs do not have, across an upgrade: how attempts failed, and how the
 * present one stands. */

#include "supervisor/job/job.h"
#include "supervisor/succession/saved-row.h"

#define JOB_ROW "job"

/* Whether there is nothing of it. */
bool job_is_plain(const struct job *job);
/* Writes its fields, and reads them into a job that was restored otherwise. 0 or -EBADMSG. */
void job_put(struct saved_writer *row, const struct job *job);
int job_get(struct saved_reader *row, struct job *job);

/* Saves it in a row of that kind, if there is anything. Returns 0 or -errno of the saver. */
int job_save(const struct job *job, struct saver *saver);

/* The jobs have been restored, under their handles. A row of a job that is gone is skipped. Returns
 * 0 or -EBADMSG. */
int job_restore_row(const struct job_table *table, struct saved_reader *row);
