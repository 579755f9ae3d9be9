/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Decides when a worker is replaced: MaxJobs=, MaxMemory=, MaxAgeSec=. Jobs and memory are checked
 * after a job or messages, memory at most ten times a second; age has a timer. An idle worker costs
 * nothing.
 *
 * Each worker draws a share of 80 to 100 %, to which all its limits are reduced, so that workers of
 * one age are not replaced together and no limit is exceeded.
 */

#include "shared/base/clock.h"
#include "supervisor/config/config.h"
#include "supervisor/process/backoff.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RECYCLE_MEASURE_EVERY (100 * USEC_PER_MSEC)

struct recycle {
    double share; /* of the limits */
    usec_t ready_at;
    usec_t measure_at; /* earliest time of the next measurement */
    bool measured;
    uint64_t baseline; /* bytes after its first work; valid if `measured` */
};

enum recycle_verdict {
    RECYCLE_KEEP,
    RECYCLE_MEASURE, /* read the memory and call recycle_measured() */
    RECYCLE_JOBS,
    RECYCLE_MEMORY,
    RECYCLE_AGE,
};

/* A worker has become ready. Times are monotonic. */
void recycle_begin(struct recycle *recycle, usec_t now, struct backoff_random *random);

/* Work has ended: this worker has done `jobs_done` jobs. */
enum recycle_verdict recycle_after_job(struct recycle *recycle, const struct config_group *config,
                                       uint64_t jobs_done, usec_t now);

/* The first value is the baseline: what the worker loads for its work is not growth. */
enum recycle_verdict recycle_measured(struct recycle *recycle, const struct config_group *config,
                                      uint64_t bytes);

/* Returns when the worker is too old; USEC_INFINITY = never. */
usec_t recycle_age_at(const struct recycle *recycle, const struct config_group *config);

/* Reads the process's own memory: resident, without shared memory, mapped files and children.
 * From /proc, takes some microseconds. Returns 0 or -errno. */
int recycle_read_memory(pid_t pid, uint64_t *ret_bytes);

/* "it has done as many jobs as it may (MaxJobs)" … Static. */
const char *recycle_reason(enum recycle_verdict verdict);
