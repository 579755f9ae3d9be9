/* SPDX-License-Identifier: MIT */
#pragma once

/* Logs the ids of many jobs in a few lines: at most JOB_IDS_LOGGED, and how many more there are. */

#include <stdint.h>

struct job;

#define JOB_IDS_LOGGED 128

struct job_ids {
    const char *what; /* what happened to them; static */
    uint64_t n;
    unsigned n_in_line;
    char line[16 * 65];
};

/* Adds a job of that group, all of whose jobs met `what`; logs a line when it is full. */
void job_ids_add(struct job_ids *ids, const char *group, const char *what, const struct job *job);

/* Logs the rest, and starts anew. */
void job_ids_end(struct job_ids *ids, const char *group);
