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
    JOBS_PENDING, /* until other jobs have ended */
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
           counts->n[JOBS_PENDING] - counts->n[JOBS_ENDING];
}

/* Like job_counts_queued(), but also counts jobs between attempts, delayed and pending ones. */
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

/* A group's state at the beginning of a second in which a job came or ended. */
struct job_sample {
    uint64_t second; /* realtime */
    uint64_t ended, dead;
    uint64_t waiting, running;
};

/* The last seconds in which something happened, for charts. Nothing is kept of the others, which
 * are like the next sample. */
#define JOB_SAMPLES_MAX 120u
struct job_samples {
    uint64_t second; /* of the last one */
    unsigned n;      /* ever, modulo 2^32: sample i is ring[i % JOB_SAMPLES_MAX] */
    struct job_sample ring[JOB_SAMPLES_MAX];
};

/* Call before a job is counted as accepted or ended. `now`: realtime. */
static inline void job_samples_note(struct job_samples *samples, const struct job_counts *counts,
                                    usec_t now)
{
    const uint64_t *n = counts->n;

    if (now / USEC_PER_SEC == samples->second)
        return;
    samples->second = now / USEC_PER_SEC;
    samples->ring[samples->n++ % JOB_SAMPLES_MAX] = (struct job_sample){
        .second = samples->second,
        .ended = n[JOBS_SUCCEEDED] + n[JOBS_REJECTED] + n[JOBS_CANCELLED] + n[JOBS_DEAD],
        .dead = n[JOBS_DEAD],
        .waiting = job_counts_waiting(counts),
        .running = n[JOBS_RUNNING],
    };
}
