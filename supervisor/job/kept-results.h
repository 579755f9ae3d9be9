/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The results that a group keeps of background jobs, oldest first. They belong to the group, not to
 * a cell: a cell may be gone while results of its jobs are still asked for.
 */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stdint.h>

struct job;
struct job_table;
struct loop;

struct kept_results {
    struct loop *loop;
    struct job_table *table;
    struct list jobs; /* struct job.link */
    uint64_t n_jobs;
    uint64_t bytes;      /* of the results */
    usec_t ttl;          /* ResultTTLSec= */
    uint64_t max;        /* ResultsMax= */
    uint64_t memory_max; /* ResultsMemoryMax= */
    struct timer timer;
};

void kept_results_init(struct kept_results *results, struct loop *loop, struct job_table *table);
void kept_results_deinit(struct kept_results *results); /* drops them all */

/* How long, how many and how many bytes; those that are kept already follow. None at first. */
void kept_results_set_bounds(struct kept_results *results, usec_t ttl, uint64_t max,
                             uint64_t memory_max);

/*
 * Takes a reference to an ended job over; beyond the bounds the oldest go. A result that is too
 * large all by itself is dropped, with a reason in the job, which is kept.
 */
void kept_results_add(struct kept_results *results, struct job *job);

/* Lets go of a kept one. */
void kept_results_drop(struct job *job);
