/* SPDX-License-Identifier: MIT */
#include "backoff.h"

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

/* Whether this unhealthy death is one too many. */
static bool exceeds_limit(struct restart_tally *tally, const struct restart_policy *policy,
                          usec_t now)
{
    if (policy->burst == 0)
        return false;
    if (tally->n_window == 0 || usec_sub(now, tally->window_start) >= policy->interval) {
        tally->window_start = now;
        tally->n_window = 0;
    }
    return ++tally->n_window > policy->burst;
}

int restart_after_death(struct restart_tally *tally, const struct restart_policy *policy,
                        bool healthy, usec_t now, struct backoff_random *random, usec_t *ret_delay)
{
    if (healthy)
        tally->n_unhealthy = 0;
    else if (exceeds_limit(tally, policy, now))
        return BACKOFF_E_LIMIT;

    *ret_delay = 0;
    if (tally->n_unhealthy > 0)
        *ret_delay = backoff_delay(&policy->backoff, tally->n_unhealthy - 1, random);
    tally->n_unhealthy++;
    return 0;
}

usec_t restart_after_failed_spawn(struct restart_tally *tally, const struct restart_policy *policy,
                                  struct backoff_random *random)
{
    /* Never at once, unlike after a death: what was short a moment ago still is. */
    return backoff_delay(&policy->backoff, tally->n_unhealthy++, random);
}

void restart_reset(struct restart_tally *tally)
{
    *tally = (struct restart_tally){0};
}
