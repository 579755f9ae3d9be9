/* SPDX-License-Identifier: MIT */
#pragma once

/* Logs the ids of many jobs in a few lines: at most JOB_ID_LOG_MAX, and the number of further jobs.
 */

#include <stdint.h>

struct job;

#define JOB_ID_LOG_MAX 128

struct job_id_log {
    const char *what; /* the event that concerns them; static */
    uint64_t n;
    unsigned n_in_line;
    char line[16 * 65];
};

/* Adds a job of that group; logs a line when it is full. `what` is the same for all jobs. */
void job_id_log_add(struct job_id_log *ids, const char *group, const char *what,
                    const struct job *job);

/* Logs the remaining ids, and empties the list. */
void job_id_log_end(struct job_id_log *ids, const char *group);
