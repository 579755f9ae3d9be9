/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * When a worker has done enough: MaxJobs=, MaxMemory=, MaxAgeSec=. Decisions only; the replacement
 * of a worker is elsewhere. Nothing here looks at a worker that does nothing: jobs and memory are
 * looked at when a job has ended or messages were handled, memory no more than ten times a second,
 * age has a timer.
 *
 * Each worker draws one share of 80 to 100 % when it comes up, and all three limits count for it by
 * that share: a pool that was started as one is not worn out as one, and no limit is exceeded.
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
    usec_t measure_at; /* not before */
    bool measured;
    uint64_t baseline; /* bytes, after its first work; valid if `measured` */
};

enum recycle_verdict {
    RECYCLE_KEEP,
    RECYCLE_MEASURE, /* read its memory, and say so to recycle_measured() */
    RECYCLE_JOBS,
    RECYCLE_MEMORY,
    RECYCLE_AGE,
};

/* It has come up. Times are monotonic. */
void recycle_begin(struct recycle *recycle, usec_t now, struct backoff_random *random);

/* Work has ended: with it this worker has done `jobs_done` jobs. */
enum recycle_verdict recycle_after_job(struct recycle *recycle, const struct config_group *config,
                                       uint64_t jobs_done, usec_t now);

/* The first time is the baseline: what it has loaded for its work is no growth. */
enum recycle_verdict recycle_measured(struct recycle *recycle, const struct config_group *config,
                                      uint64_t bytes);

/* When it is too old; USEC_INFINITY = never. */
usec_t recycle_age_at(const struct recycle *recycle, const struct config_group *config);

/*
 * The memory that is the process's own: resident, without what it shares or maps from files, and
 * without that of its children. From /proc, some microseconds. 0 or -errno.
 */
int recycle_read_memory(pid_t pid, uint64_t *ret_bytes);

/* "it has done as many jobs as it may (MaxJobs)" … Static. */
const char *recycle_reason(enum recycle_verdict verdict);
