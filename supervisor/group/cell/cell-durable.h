/* SPDX-License-Identifier: MIT */
#pragma once

/* The durable jobs of a cell: what follows when their rows have been written, or could not be. */

#include "supervisor/store/durable-job.h"

struct cell;
struct cell_request;

/* Whether a new durable job can be written. Returns 0, CELL_E_WAIT while the store is being opened,
 * or CELL_E_STORE_*. */
int cell_admit_durable(struct cell *cell, const struct cell_request *request);

/* Begins to write an end that has been decided. Returns false if it may be told at once. */
bool cell_write_end(struct cell *cell, struct job *job, enum job_state end);

/* What stays of a job with this end: bits of enum durable_rest. */
unsigned cell_rest_of(const struct cell *cell, const struct job *job, enum job_state end);

/* If the cell is closed, takes a durable job that waits out of memory; its row stays. */
void cell_leave_on_disk(struct cell *cell, struct job *job);

/* As struct durable_jobs.written. */
void cell_on_written(struct job *job, unsigned changes, int result);
