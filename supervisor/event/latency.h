/* SPDX-License-Identifier: MIT */
#pragma once

#include "shared/base/clock.h"
#include <stdint.h>

/* A histogram of how long jobs took from acceptance to end. Old values fade, so it shows about
 * the last thousand. A bucket is an eighth of a power of two. */

struct record;

#define LATENCY_STEPS   8u
#define LATENCY_BUCKETS (LATENCY_STEPS * 37u) /* up to 2^40 µs; the last bucket has the rest */
#define LATENCY_MAX_N   1024u                 /* then all counts are halved */

/* Valid when zeroed. */
struct latency {
    uint16_t counts[LATENCY_BUCKETS];
    uint32_t n;
};

void latency_add(struct latency *latency, usec_t took);

/* Returns what `percent` (1 … 100) % of the jobs took at most, rounded up to the end of the
 * bucket (by an eighth at most). 0 if there is no job. */
usec_t latency_percentile(const struct latency *latency, unsigned percent);

extern const struct record LATENCY_RECORD;

/* A histogram of all durations, for monitoring systems, which take the difference of two readings.
 * (struct latency is one of the last durations.) */

/* Bucket `i` counts durations of at most HISTOGRAM_LEAST << i, and the last one all longer ones. */
#define HISTOGRAM_LEAST_BITS 4
#define HISTOGRAM_LEAST      ((usec_t)1 << HISTOGRAM_LEAST_BITS)
#define HISTOGRAM_BOUNDS     29u /* up to 2^32 µs, more than an hour */

/* Valid when zeroed. */
struct histogram {
    uint64_t counts[HISTOGRAM_BOUNDS + 1];
    usec_t sum;
};

static inline void histogram_add(struct histogram *histogram, usec_t took)
{
    unsigned i = 0;

    if (took > HISTOGRAM_LEAST)
        i = 64u - HISTOGRAM_LEAST_BITS - (unsigned)__builtin_clzll(took - 1);
    histogram->counts[i < HISTOGRAM_BOUNDS ? i : HISTOGRAM_BOUNDS]++;
    histogram->sum += took;
}

extern const struct record HISTOGRAM_RECORD;
