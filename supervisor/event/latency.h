/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How long the last jobs took, from being accepted to their end: a histogram whose older half
 * counts less and less, so that it tells of about the last thousand. Its steps are an eighth of a
 * power of two.
 */

#include "shared/base/clock.h"
#include <stdint.h>

#define LATENCY_STEPS   8u
#define LATENCY_BUCKETS (LATENCY_STEPS * 37u) /* up to 2^40 µs; what took longer is in the last */
#define LATENCY_MAX_N   1024u                 /* then all counts are halved */

/* All zero = nothing yet. */
struct latency {
    uint16_t counts[LATENCY_BUCKETS];
    uint32_t n;
};

void latency_add(struct latency *latency, usec_t took);

/* What so many in a hundred (1 … 100) of them took at most, as the end of their step: at most an
 * eighth too much. 0 if there was none. */
usec_t latency_percentile(const struct latency *latency, unsigned percent);
