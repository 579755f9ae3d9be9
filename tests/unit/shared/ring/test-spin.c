/* SPDX-License-Identifier: MIT */
#include "shared/ring/spin.h"
#include "tests/unit/suite.h"

#define LIMIT 50

static struct spin spin;
static usec_t now;

static void set_up(void)
{
    spin_init(&spin, LIMIT);
    now = 1000000;
}

/* One try that finds something after so many microseconds, or nothing at all (USEC_INFINITY).
 * Whether there was one. */
static bool try(usec_t after)
{
    usec_t began = now;
    bool found = false;

    if (!spin_begin(&spin, now))
        return false;
    while (!(found = now - began >= after) && spin_more(&spin, now))
        now++;
    spin_end(&spin, now, found);
    return true;
}

static unsigned tries_among(unsigned n_sleeps, usec_t after)
{
    unsigned n = 0;

    for (unsigned i = 0; i < n_sleeps; i++)
        n += try(after);
    return n;
}

TEST(test_a_try_in_vain_ends_at_the_limit)
{
    usec_t began = now;

    ck_assert(try(USEC_INFINITY));
    ck_assert_uint_eq(now - began, LIMIT);
}

TEST(test_a_limit_of_0_means_never)
{
    spin_init(&spin, 0);
    ck_assert(!try(0));
}

TEST(test_a_limit_is_bounded)
{
    usec_t began = now;

    spin_init(&spin, UINT32_MAX);
    ck_assert(try(USEC_INFINITY));
    ck_assert_uint_eq(now - began, SPIN_USEC_MAX);
}

TEST(test_what_pays_goes_on)
{
    ck_assert_uint_eq(tries_among(1000, 3), 1000);
}

TEST(test_what_never_pays_becomes_rare)
{
    ck_assert_uint_le(tries_among(10000, USEC_INFINITY), 20);
}

TEST(test_what_costs_more_than_a_sleep_becomes_rare)
{
    ck_assert_uint_le(tries_among(10000, LIMIT - 5), 20);
}

TEST(test_one_try_that_pays_is_enough_to_go_on)
{
    tries_among(10000, USEC_INFINITY);
    while (!try(1))
        ;
    ck_assert_uint_eq(tries_among(1000, 1), 1000);
}

TEST(test_some_tries_in_vain_are_forgiven)
{
    tries_among(1000, 1);
    ck_assert_uint_eq(tries_among(5, USEC_INFINITY), 5);
    ck_assert_uint_eq(tries_among(100, 1), 100);
}

/* Somebody else had the CPU: whatever was found, it is not idle. */
TEST(test_a_find_after_more_than_the_limit_does_not_pay)
{
    unsigned n = 0;

    for (unsigned i = 0; i < 1000; i++) {
        if (!spin_begin(&spin, now))
            continue;
        n++;
        now += 3000;
        spin_end(&spin, now, true);
    }
    ck_assert_uint_le(n, 20);
}

/* Tries that find something shortly before the limit, when others have used the CPU so often, each
 * time almost as long as the try lasts. */
static unsigned tries_with_others(unsigned n_tries, unsigned n_taken)
{
    unsigned n = 0;

    for (unsigned i = 0; i < n_tries; i++) {
        if (!spin_begin(&spin, now))
            continue;
        n++;
        for (unsigned k = 0; k < n_taken; k++)
            spin_offered(&spin, (LIMIT - 10) * 1000);
        now += LIMIT - 5;
        spin_end(&spin, now, true);
    }
    return n;
}

TEST(test_what_the_peer_uses_of_the_cpu_is_not_spent)
{
    ck_assert_uint_eq(tries_with_others(1000, 1), 1000);
}

/* Of several, some do not help: sleeping is cheaper than handing the CPU around. */
TEST(test_what_several_use_of_the_cpu_is_spent)
{
    ck_assert_uint_le(tries_with_others(10000, 2), 20);
}

TEST(test_where_waking_is_expensive_longer_tries_pay)
{
    for (int i = 0; i < 100; i++)
        spin_woke(&spin, 13000);
    ck_assert_uint_eq(tries_among(1000, LIMIT - 5), 1000);
}

TEST(test_where_waking_becomes_cheap_longer_tries_cease)
{
    for (int i = 0; i < 200; i++)
        spin_woke(&spin, i < 100 ? 13000 : 1500);
    ck_assert_uint_le(tries_among(10000, LIMIT - 5), 20);
}

TEST(test_few_wake_ups_are_measured)
{
    unsigned n = 0;

    for (int i = 0; i < 160; i++) {
        uint64_t begin = spin_wake_begin(&spin);

        n += begin != 0;
        spin_wake_end(&spin, begin);
    }
    ck_assert_uint_eq(n, 10);
}

/* Looks until the CPU is offered the first time. */
static uint32_t looks_before_offer(void)
{
    uint32_t n = 0;

    ck_assert(spin_begin(&spin, now));
    while (!spin.offered) {
        ck_assert(spin_more(&spin, now));
        n++;
    }
    return n;
}

TEST(test_the_cpu_is_offered_now_and_then)
{
    ck_assert_uint_eq(looks_before_offer(), SPIN_PATIENCE_MAX);
}

/* Finds that come with the CPU's return, from somebody who had it, or from nobody. */
static void find_after_offers(int n, bool taken)
{
    for (int i = 0; i < n; i++) {
        looks_before_offer();
        spin.taken = taken;
        spin_end(&spin, now, true);
    }
}

TEST(test_it_is_offered_at_once_where_that_is_what_helps)
{
    find_after_offers(10, true);
    ck_assert_uint_eq(looks_before_offer(), 1);
}

TEST(test_offers_that_nobody_takes_do_not_help)
{
    find_after_offers(10, false);
    ck_assert_uint_eq(looks_before_offer(), SPIN_PATIENCE_MAX);
}

TEST(test_patience_returns_when_nobody_takes_the_cpu)
{
    find_after_offers(10, true);
    find_after_offers(SPIN_PATIENCE_MAX, false);
    ck_assert_uint_eq(looks_before_offer(), SPIN_PATIENCE_MAX);
}

/* Who always offers at once never learns that looking once more would have done. */
TEST(test_patience_is_tried_once_in_a_while)
{
    unsigned n = 0;

    find_after_offers(10, true);
    while (looks_before_offer() == 1 && n++ < 10000) {
        spin.taken = true;
        spin_end(&spin, now, true);
    }
    ck_assert_uint_eq(spin.allowed, SPIN_PATIENCE_MAX);
    ck_assert_uint_ge(n, 100);
    spin.offered = spin.taken = false;
    spin_end(&spin, now, true);
    ck_assert_uint_eq(looks_before_offer(), SPIN_PATIENCE_MAX);
}

TEST(test_a_try_of_patience_in_vain_changes_nothing)
{
    find_after_offers(10, true);
    while (looks_before_offer() == 1) {
        spin.taken = true;
        spin_end(&spin, now, true);
    }
    spin.taken = true;
    spin_end(&spin, now, true);
    ck_assert_uint_eq(looks_before_offer(), 1);
}

const struct suite suite = {.setup = set_up};
