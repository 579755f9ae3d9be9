/* SPDX-License-Identifier: MIT */
#pragma once

/* Statistics of the jobs of a cell, with those of its group as parent: they change together. */

#include "supervisor/event/latency.h"
#include "supervisor/job/outcomes.h"
#include <stdint.h>

enum job_count {
    /* Since the group was loaded; a group's include cells that are gone. */
    JOBS_SUCCEEDED,
    JOBS_REJECTED,
    JOBS_CANCELLED,
    JOBS_DEAD,
    JOBS_RETRIES,
    JOBS_REFUSED,
    JOBS_ACCEPTED,
    /* Now. */
    JOBS_LIVE, /* not ended */
    JOBS_RUNNING,
    JOBS_BACKOFF, /* between attempts, and those whose time has not come */
    JOBS_ENDING,  /* durable jobs whose end is being written */
    JOBS_ON_DISK, /* durable jobs that wait, and are not in memory */
    JOBS_BYTES,   /* payloads of live jobs in memory */
    JOBS_WAITERS, /* for room in the queue */
    _JOBS_N_COUNTS,
};

struct job_counts {
    uint64_t n[_JOBS_N_COUNTS];
    struct job_counts *parent; /* NULL = none */
};

static inline void job_count(struct job_counts *counts, enum job_count what, int64_t change)
{
    counts->n[what] += (uint64_t)change;
    if (counts->parent)
        counts->parent->n[what] += (uint64_t)change;
}

/* Jobs that wait for a worker. */
static inline uint64_t job_counts_queued(const struct job_counts *counts)
{
    return counts->n[JOBS_LIVE] - counts->n[JOBS_RUNNING] - counts->n[JOBS_BACKOFF] -
           counts->n[JOBS_ENDING];
}

/* Like job_counts_queued(), but also counts jobs between attempts and delayed ones. */
static inline uint64_t job_counts_waiting(const struct job_counts *counts)
{
    return counts->n[JOBS_LIVE] - counts->n[JOBS_RUNNING] - counts->n[JOBS_ENDING];
}

struct job_history {
    struct latency latency; /* of jobs that a worker ended, from their acceptance */
    struct latency work;    /* the same, from the beginning of the last attempt */
    struct outcomes outcomes;
    struct job_history *parent; /* NULL = none */
};
