/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Exponential backoff with jitter: min(max, min × 2ⁿ) × (1 + rand × random), rand in [0, 1).
 * Used between restarts of a slot and between attempts of a job.
 */

#include "../shared/clock.h"
#include <stdbool.h>
#include <stdint.h>

struct backoff_policy {
    usec_t min, max;
    double random; /* 0 … 1 */
};

/* xorshift64*; seeded once, never 0. Not for secrets. */
struct backoff_random {
    uint64_t state;
};

void backoff_random_seed(struct backoff_random *random, uint64_t seed);

/* In [0, 1). */
double backoff_random_next(struct backoff_random *random);

/* The delay before retry number `n` (0 = the first). No overflow for any n. */
usec_t backoff_delay(const struct backoff_policy *policy, unsigned n,
                     struct backoff_random *random);

/*
 * When deaths of one slot may restart it: the first one after a healthy period at once, the
 * following ones after backoff_delay(n = 0, 1, …). More than `burst` unhealthy deaths within
 * `interval` is too many (burst 0 = no limit). A death is healthy if the worker had done a job or
 * had been up for `reset_after`.
 */
struct restart_policy {
    struct backoff_policy backoff;
    usec_t reset_after;
    unsigned burst;
    usec_t interval;
};

struct restart_tally {
    unsigned n_unhealthy; /* in a row */
    unsigned n_window;    /* within the interval that began at window_start */
    usec_t window_start;
};

enum {
    _BACKOFF_E_SUCCESS,
    BACKOFF_E_LIMIT, /* too many deaths: stay down until a reset */
};

/* Counts a death at `now`; 0 with `*ret_delay` = time until the restart, or BACKOFF_E_LIMIT. */
int restart_after_death(struct restart_tally *tally, const struct restart_policy *policy,
                        bool healthy, usec_t now, struct backoff_random *random, usec_t *ret_delay);

/* A spawn that failed: always retried, with backoff, never counted against the burst. */
usec_t restart_after_failed_spawn(struct restart_tally *tally, const struct restart_policy *policy,
                                  struct backoff_random *random);

void restart_reset(struct restart_tally *tally);
