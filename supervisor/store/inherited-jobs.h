/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Carries state across an upgrade that a queued durable job's row does not hold: mainly how
 * attempts failed. An entry waits in memory until the row of its job is read.
 */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include "supervisor/succession/saved-row.h"
#include <stdint.h>

#define INHERITED_JOB_ROW "durable-job"

struct job;

struct inherited_jobs {
    struct index by_number; /* of the job's row */
    struct list all;
};

void inherited_jobs_init(struct inherited_jobs *inherited);
void inherited_jobs_deinit(struct inherited_jobs *inherited);

/* Saves it for a durable job, if there is anything. Returns 0 or -errno of the saver. */
int inherited_job_save(const struct job *job, struct saver *saver);
/* Saves again what no job has taken: rows are still being read. The same. */
int inherited_jobs_save(const struct inherited_jobs *inherited, struct saver *saver);

/* Keeps it until the job's row is read. Returns 0, -EBADMSG or -ENOMEM. */
int inherited_job_restore_row(struct inherited_jobs *inherited, struct saved_reader *row);
/* There is such a job, and it stays on disk for now. */
void inherited_jobs_keep(struct inherited_jobs *inherited, int64_t number);
/* The row of the job was read: gives the job what is kept for it, if anything. */
void inherited_jobs_give(struct inherited_jobs *inherited, struct job *job, int64_t number);
/* All jobs are known: forgets what belongs to none. */
void inherited_jobs_settle(struct inherited_jobs *inherited);
