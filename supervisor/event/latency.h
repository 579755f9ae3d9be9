/* SPDX-License-Identifier: MIT */
#pragma once

/* A histogram of how long jobs took from acceptance to end. Old values fade, so it shows about
 * the last thousand. A bucket is an eighth of a power of two. */

#include "shared/base/clock.h"
#include <stdint.h>

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
