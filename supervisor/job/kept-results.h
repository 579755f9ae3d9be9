/* SPDX-License-Identifier: MIT */
#pragma once

/* The results of background jobs that a group keeps, oldest first. They belong to the group because
 * a result may outlive its cell. Each submitter has a share: a flood of one user displaces only
 * that user's results. */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "shared/base/share.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stdint.h>

struct job;
struct job_table;
struct loop;

struct kept_result {
    struct list link;       /* among the group's */
    struct share *share;    /* of its submitter; NULL = in `aside` of the results */
    struct list share_link; /* in the first of the share's entries[], whatever the kind */
    struct list blob_link;  /* in its blob's share: it can be spared */
    struct list large_link; /* then: in another of the share's entries[] */
    struct kept_results *results;
    struct job *job;
    usec_t since; /* monotonic */
};

struct kept_results {
    struct loop *loop;
    struct job_table *table;
    struct list jobs; /* struct kept_result.link */
    uint64_t n_jobs;
    uint64_t bytes; /* of the results */
    struct shares shares;
    /* Results beyond the bounds that are kept since live jobs wait for their jobs: struct
     * kept_result.link. These may also take `memory_max`. */
    struct list aside;
    uint64_t aside_bytes;
    usec_t ttl;          /* ResultTTLSec= */
    uint64_t max;        /* ResultsMax= */
    uint64_t memory_max; /* ResultsMemoryMax= */
    struct timer timer;
};

void kept_results_init(struct kept_results *results, struct loop *loop, struct job_table *table);
void kept_results_deinit(struct kept_results *results); /* drops them all */
/* Drops as many as may go in one turn. Returns whether none is left. */
bool kept_results_clear(struct kept_results *results);

/* Sets the bounds, and drops results beyond them. At first no result is kept. */
void kept_results_set_bounds(struct kept_results *results, usec_t ttl, uint64_t max,
                             uint64_t memory_max);

/* Takes over a reference to an ended job, and drops the oldest beyond the bounds. A result above
 * `memory_max` is dropped, with a reason in the job, which is kept. Without memory, the job is
 * dropped immediately. */
void kept_results_add(struct kept_results *results, struct job *job);
/* Like kept_results_add(), but for a result that has been kept since then (monotonic). */
void kept_results_restore(struct kept_results *results, struct job *job, usec_t since);

/* Drops a kept result. */
void kept_results_drop(struct job *job);
/* No job that has waited for this one is live any more: drops its result if it is beyond the
 * bounds. */
void kept_results_review(struct job *job);
