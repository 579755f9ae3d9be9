/* SPDX-License-Identifier: MIT */
#include "supervisor/process/backoff.h"

#include <errno.h>
#include <stdlib.h>

void backoff_random_seed(struct backoff_random *random, uint64_t seed)
{
    /* Spreads small seeds over all bits (one step of splitmix64); xorshift must not start at 0. */
    uint64_t z = seed + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    random->state = z != 0 ? z : 1;
}

double backoff_random_next(struct backoff_random *random)
{
    uint64_t x = random->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    /* The upper 53 bits, as many as a double holds: the result never rounds up to 1. */
    return (double)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 11) * 0x1p-53;
}

usec_t backoff_delay(const struct backoff_policy *policy, unsigned n, struct backoff_random *random)
{
    usec_t delay = policy->max;
    if (n < 64 && policy->min <= policy->max >> n)
        delay = policy->min << n;
    double jitter = (double)delay * policy->random * backoff_random_next(random);
    return usec_add(delay, (usec_t)jitter);
}

/* A minimum of 0 would stay 0 when doubled. */
#define RESTART_PAUSE_MIN USEC_PER_MSEC

static usec_t restart_pause(const struct restart_policy *policy, unsigned n,
                            struct backoff_random *random)
{
    struct backoff_policy backoff = policy->backoff;

    if (backoff.min == 0)
        backoff.min = RESTART_PAUSE_MIN;
    return backoff_delay(&backoff, n, random);
}

/* Returns whether another unhealthy death exceeds the limit: `burst` earlier ones lie within the
 * interval. */
static bool is_limit(const struct restart_tally *tally, const struct restart_policy *policy,
                     usec_t now)
{
    return policy->burst > 0 && tally->capacity == policy->burst &&
           tally->n_recent == tally->capacity &&
           usec_sub(now, tally->recent[tally->next]) < policy->interval;
}

/* Makes room for `burst` deaths. When a reload has changed the burst, the count starts again. */
static int restart_reserve(struct restart_tally *tally, unsigned burst)
{
    usec_t *recent;

    if (tally->capacity == burst)
        return 0;
    recent = calloc(burst, sizeof(*recent));
    if (!recent)
        return -ENOMEM;
    free(tally->recent);
    tally->recent = recent;
    tally->capacity = burst;
    tally->n_recent = tally->next = 0;
    return 0;
}

static void count_unhealthy(struct restart_tally *tally, const struct restart_policy *policy,
                            usec_t now)
{
    /* Out of memory: the death is not counted, but the pauses still grow. */
    if (policy->burst == 0 || restart_reserve(tally, policy->burst) < 0)
        return;
    tally->recent[tally->next] = now;
    tally->next = (tally->next + 1) % tally->capacity;
    if (tally->n_recent < tally->capacity)
        tally->n_recent++;
}

int restart_after_death(struct restart_tally *tally, const struct restart_policy *policy,
                        enum restart_death death, usec_t now, struct backoff_random *random,
                        usec_t *ret_delay)
{
    unsigned n;

    if (death == RESTART_UNHEALTHY) {
        if (is_limit(tally, policy, now))
            return BACKOFF_E_LIMIT;
        count_unhealthy(tally, policy, now);
    } else if (death == RESTART_HEALTHY) {
        tally->n_pauses = 0;
    }
    n = tally->n_pauses;
    if (death != RESTART_AT_WORK || n == 0)
        tally->n_pauses++;
    else
        n = 1;
    *ret_delay = n > 0 ? restart_pause(policy, n - 1, random) : 0;
    return 0;
}

bool restart_is_immediate(const struct restart_tally *tally, const struct restart_policy *policy,
                          enum restart_death death, usec_t now)
{
    if (death == RESTART_HEALTHY)
        return true;
    return tally->n_pauses == 0 && (death == RESTART_AT_WORK || !is_limit(tally, policy, now));
}

int restart_after_failed_spawn(struct restart_tally *tally, const struct restart_policy *policy,
                               bool lasting, usec_t now, struct backoff_random *random,
                               usec_t *ret_delay)
{
    if (lasting && is_limit(tally, policy, now))
        return BACKOFF_E_LIMIT;
    if (lasting)
        count_unhealthy(tally, policy, now);
    /* Never 0: what made the start fail may last. */
    *ret_delay = restart_pause(policy, tally->n_pauses++, random);
    return 0;
}

void restart_reset(struct restart_tally *tally)
{
    free(tally->recent);
    *tally = (struct restart_tally){0};
}

void restart_move(struct restart_tally *to, struct restart_tally *from)
{
    restart_reset(to);
    *to = *from;
    *from = (struct restart_tally){0};
}
