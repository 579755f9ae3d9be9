/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Exponential backoff with jitter: min(max, min × 2ⁿ) × (1 + rand × random), rand in [0, 1).
 * Used between restarts of a slot and between attempts of a job.
 */

#include "shared/base/clock.h"
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

/* How far a worker had come when it died. */
enum restart_death {
    RESTART_UNHEALTHY, /* nothing: the program itself fails */
    RESTART_AT_WORK,   /* nothing, but a job or message was in hand, which may be the cause */
    RESTART_HEALTHY,   /* handled a job or message, or was up for long enough */
};

/*
 * Policy for restarts of a slot. The first restart after a healthy life is immediate. After
 * RESTART_UNHEALTHY the pauses are backoff_delay(n = 0, 1, …). After RESTART_AT_WORK the pause does
 * not grow: the job or message has its own retries and backoff. More than `burst` unhealthy deaths
 * within any `interval` reach the limit (burst 0 = no limit).
 */
struct restart_policy {
    struct backoff_policy backoff;
    unsigned burst;
    usec_t interval;
};

#define RESTART_BURST_MAX 1000

/* Valid when zeroed. Owns memory after the first death; restart_reset() frees it. */
struct restart_tally {
    unsigned n_pauses; /* restarts since the last healthy life */
    usec_t *recent;    /* ring: times of the last `burst` unhealthy deaths, monotonic */
    unsigned capacity, n_recent, next;
};

enum {
    _BACKOFF_E_SUCCESS,
    BACKOFF_E_LIMIT, /* limit reached: no restart until a reset */
};

/* Counts a death at `now`. Returns 0 with `*ret_delay` = time until the restart, or
 * BACKOFF_E_LIMIT. */
int restart_after_death(struct restart_tally *tally, const struct restart_policy *policy,
                        enum restart_death death, usec_t now, struct backoff_random *random,
                        usec_t *ret_delay);

/* Returns whether a death now would be followed by a restart without a pause. Counts nothing. */
bool restart_is_immediate(const struct restart_tally *tally, const struct restart_policy *policy,
                          enum restart_death death, usec_t now);

/* Like restart_after_death(), but after a spawn that failed. A `lasting` failure counts as an
 * unhealthy death; any other is always retried and never counts. */
int restart_after_failed_spawn(struct restart_tally *tally, const struct restart_policy *policy,
                               bool lasting, usec_t now, struct backoff_random *random,
                               usec_t *ret_delay);

/* Forgets all deaths and frees what the tally owns. */
void restart_reset(struct restart_tally *tally);

/* Moves the count from `from`, which is empty afterwards, to `to`. */
void restart_move(struct restart_tally *to, struct restart_tally *from);
