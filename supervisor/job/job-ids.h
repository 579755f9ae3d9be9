/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The ids of many jobs in a few log lines: JOB_IDS_LOGGED of them at most, and how many more there
 * are.
 */

#include <stdint.h>

struct job;

#define JOB_IDS_LOGGED 128

struct job_ids {
    const char *what; /* what has become of them; static; NULL = nothing to say yet */
    uint64_t n;
    unsigned n_in_line;
    char line[16 * 65];
};

/* Notes one job of that group, whose jobs all met `what`; logs a line when it is full. */
void job_ids_add(struct job_ids *ids, const char *group, const char *what, const struct job *job);

/* Logs what is left, and begins anew. */
void job_ids_end(struct job_ids *ids, const char *group);
