/* SPDX-License-Identifier: MIT */
#include "supervisor/process/backoff.h"
#include "tests/unit/suite.h"
#include <limits.h>

static const struct restart_policy policy = {
    .backoff = {.min = 100, .max = 1000, .random = 0},
    .burst = 5,
    .interval = 10 * USEC_PER_SEC,
};

static struct backoff_random source;
static struct restart_tally tally;

static void seed(void)
{
    backoff_random_seed(&source, 1);
}

static void forget(void)
{
    restart_reset(&tally);
}

TEST(doubles_from_min_and_stays_at_max)
{
    const usec_t expected[] = {100, 200, 400, 800, 1000, 1000};
    for (unsigned n = 0; n < 6; n++)
        ck_assert_uint_eq(backoff_delay(&policy.backoff, n, &source), expected[n]);
}

TEST(no_number_of_retries_overflows)
{
    struct backoff_policy wide = {.min = 3, .max = USEC_INFINITY, .random = 1};
    usec_t before = 0;
    for (unsigned n = 0; n < 200; n++) {
        struct backoff_policy plain = wide;
        plain.random = 0;
        usec_t delay = backoff_delay(&plain, n, &source);
        ck_assert_uint_ge(delay, before);
        before = delay;
        ck_assert_uint_ge(backoff_delay(&wide, n, &source), delay);
    }
    ck_assert_uint_eq(backoff_delay(&wide, UINT_MAX, &source), USEC_INFINITY);
    ck_assert_uint_eq(backoff_delay(&(struct backoff_policy){0}, UINT_MAX, &source), 0);
}

TEST(jitter_is_between_nothing_and_the_configured_share)
{
    struct backoff_policy jittery = {.min = 1000, .max = 100000, .random = 0.2};
    usec_t low = USEC_INFINITY, high = 0;
    for (int i = 0; i < 10000; i++) {
        usec_t delay = backoff_delay(&jittery, 2, &source);
        low = delay < low ? delay : low;
        high = delay > high ? delay : high;
    }
    ck_assert_uint_ge(low, 4000);
    ck_assert_uint_lt(low, 4010);
    ck_assert_uint_lt(high, 4800);
    ck_assert_uint_gt(high, 4790);
}

TEST(the_source_of_randomness_is_uniform_below_one_for_any_seed)
{
    for (uint64_t s = 0; s < 64; s++) {
        double sum = 0;
        backoff_random_seed(&source, s == 63 ? UINT64_MAX : s);
        for (int i = 0; i < 1000; i++) {
            double value = backoff_random_next(&source);
            ck_assert(value >= 0 && value < 1);
            sum += value;
        }
        ck_assert(sum > 440 && sum < 560);
    }
}

static usec_t delay; /* before the restart after the last death */

static int die(enum restart_death death, usec_t at)
{
    return restart_after_death(&tally, &policy, death, at, &source, &delay);
}

TEST(the_first_restart_is_immediate_and_backoff_begins_with_the_second)
{
    const usec_t expected[] = {0, 100, 200, 400, 800};
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(die(RESTART_UNHEALTHY, 1000), 0);
        ck_assert_uint_eq(delay, expected[i]);
    }
}

TEST(a_healthy_life_starts_the_backoff_anew)
{
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(die(RESTART_UNHEALTHY, 1000), 0);
    ck_assert_uint_eq(delay, 200);
    ck_assert_int_eq(die(RESTART_HEALTHY, 1000), 0);
    ck_assert_uint_eq(delay, 0);
    ck_assert_int_eq(die(RESTART_UNHEALTHY, 1000), 0);
    ck_assert_uint_eq(delay, 100);
}

TEST(more_unhealthy_deaths_than_the_burst_hit_the_limit)
{
    usec_t now = 1000;
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(die(RESTART_UNHEALTHY, now++), 0);
    ck_assert_int_eq(die(RESTART_UNHEALTHY, now), BACKOFF_E_LIMIT);
    restart_reset(&tally);
    ck_assert_int_eq(die(RESTART_UNHEALTHY, now), 0);
    ck_assert_uint_eq(delay, 0);
}

TEST(healthy_deaths_and_old_ones_do_not_count_against_the_burst)
{
    usec_t now = 1000;
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(die(RESTART_HEALTHY, now++), 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 5; i++)
            ck_assert_int_eq(die(RESTART_UNHEALTHY, now), 0);
        now += policy.interval;
    }
}

TEST(the_window_of_the_limit_slides)
{
    usec_t now = USEC_PER_SEC;
    /* Three late in one window and three early in the next are six within less than one. */
    ck_assert_int_eq(die(RESTART_UNHEALTHY, now), 0);
    now += policy.interval - 2;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(die(RESTART_UNHEALTHY, now), 0);
    now += 4;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(die(RESTART_UNHEALTHY, now), 0);
    ck_assert_int_eq(die(RESTART_UNHEALTHY, now), BACKOFF_E_LIMIT);
}

TEST(a_death_over_a_job_neither_counts_nor_makes_the_pauses_grow)
{
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(die(RESTART_AT_WORK, 1), 0);
        ck_assert_uint_eq(delay, i == 0 ? 0 : 100);
    }
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(die(RESTART_UNHEALTHY, 1), 0);
    ck_assert_uint_eq(delay, 1000);
    ck_assert_int_eq(die(RESTART_AT_WORK, 1), 0);
    ck_assert_uint_eq(delay, 100);
}

TEST(an_immediate_restart_is_foreseen)
{
    static const enum restart_death deaths[] = {RESTART_UNHEALTHY, RESTART_AT_WORK, RESTART_HEALTHY,
                                                RESTART_AT_WORK, RESTART_HEALTHY};
    for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
        bool immediate = restart_is_immediate(&tally, &policy, deaths[i], 1);
        ck_assert_int_eq(restart_after_death(&tally, &policy, deaths[i], 1, &source, &delay), 0);
        ck_assert_int_eq(immediate, delay == 0);
    }
}

TEST(without_a_shortest_pause_the_pauses_grow_all_the_same)
{
    const struct restart_policy eager = {.backoff = {.max = 30 * USEC_PER_SEC}};
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(restart_after_death(&tally, &eager, RESTART_UNHEALTHY, 1, &source, &delay),
                         0);
    ck_assert_uint_eq(delay, 30 * USEC_PER_SEC);
}

TEST(without_a_burst_there_is_no_limit)
{
    struct restart_policy endless = policy;
    endless.burst = 0;
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(
            restart_after_death(&tally, &endless, RESTART_UNHEALTHY, 1, &source, &delay), 0);
    ck_assert_uint_eq(delay, 1000);
}

static int after_failed_spawn(bool lasting, usec_t *ret_delay)
{
    return restart_after_failed_spawn(&tally, &policy, lasting, 1, &source, ret_delay);
}

TEST(a_spawn_that_fails_for_a_moment_waits_and_never_hits_the_limit)
{
    const usec_t expected[] = {100, 200, 400, 800, 1000, 1000, 1000, 1000};
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(after_failed_spawn(false, &delay), 0);
        ck_assert_uint_eq(delay, expected[i]);
    }
    ck_assert_int_eq(die(RESTART_UNHEALTHY, 1), 0);
}

TEST(a_spawn_that_fails_lastingly_hits_the_limit)
{
    for (unsigned i = 0; i < policy.burst; i++)
        ck_assert_int_eq(after_failed_spawn(true, &delay), 0);
    ck_assert_uint_ge(delay, policy.backoff.min);
    ck_assert_int_eq(after_failed_spawn(true, &delay), BACKOFF_E_LIMIT);
}

const struct suite suite = {.setup = seed, .teardown = forget};
