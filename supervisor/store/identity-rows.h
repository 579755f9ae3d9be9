/* SPDX-License-Identifier: MIT */
#pragma once

/* Rows that say under which handle and id the last supervisor had a job that is not durable. They
 * are in the database of an upgrade only. */

#include "supervisor/job/job.h"
#include "supervisor/succession/saved-row.h"
#include "supervisor/store/database.h"

struct identity_row {
    int64_t number; /* of the job's row */
    uint64_t handle;
    uint64_t high, low; /* its id, unless that was chosen */
};

/* Makes the table. Returns 0 or -errno. */
int identity_rows_create(struct database *database);

/* Adds a row. Returns 0 or -errno. */
int identity_rows_add(struct database *database, const struct identity_row *row);

/* Reads the row of `number`. Returns 0, -ENOENT, or another -errno. */
int identity_rows_fetch(struct database *database, int64_t number, struct identity_row *ret);

/* Write and read the identity of a job that is saved in one row: all but the number. */
void identity_put(struct saved_writer *writer, const struct job *job);
void identity_get(struct saved_reader *reader, struct identity_row *row);

/* Makes the job again, as job_restore(); `name` is its chosen id, which need not be terminated. */
int identity_restore_job(const struct identity_row *row, struct job_table *table, const char *name,
                         size_t size, struct job **ret);
