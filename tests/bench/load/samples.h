/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Durations: taken with what the clock itself costs subtracted, printed as percentiles and a
 * histogram.
 */

#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC, nanoseconds: the same for all processes of a machine. */
uint64_t samples_now(void);

struct samples {
    uint64_t *ns;
    size_t n, max;
    uint64_t
        overhead_ns; /* between two calls of samples_now() with nothing in between: the median */
};

/* Room for `max` durations; 0 or -ENOMEM. To be ended with samples_deinit(). */
int samples_init(struct samples *samples, size_t max);
void samples_deinit(struct samples *samples);

/* What lies between two calls of samples_now(). More than there is room for is dropped. */
void samples_add(struct samples *samples, uint64_t begin_ns, uint64_t end_ns);

/*
 * Prints members of a JSON object, without braces: `PREFIXp50_us`, p90, p99, p999, max, mean,
 * count, and `PREFIXhistogram`, a list of [upper bound in us, count] with eight steps to a
 * doubling. Sorts the samples.
 */
void samples_print(struct samples *samples, const char *prefix);
