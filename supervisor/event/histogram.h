/* SPDX-License-Identifier: MIT */
#pragma once

/* A histogram of all durations, for monitoring systems, which take the difference of two readings.
 * (latency.h has one of the last durations.) */

#include "shared/base/clock.h"
#include <stdint.h>

struct record;

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
