/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/toll.h"
#include "tests/unit/suite.h"
#include <unistd.h>

#define LONG (11 * USEC_PER_MSEC)

static usec_t now = USEC_PER_SEC;

static enum toll_verdict work(uint64_t owner, usec_t span)
{
    const struct toll toll = toll_begin(now);
    const usec_t begun = clock_cpu();

    while (usec_sub(clock_cpu(), begun) < span)
        ;
    return toll_end(toll, now, owner);
}

TEST(three_long_calls_bar_an_owner_for_a_while)
{
    const usec_t before = now;

    ck_assert_int_eq(work(7, LONG), TOLL_SUSPECT); /* perhaps other processes took the time */
    ck_assert_int_eq(work(7, LONG), TOLL_SUSPECT);
    ck_assert_int_eq(work(7, LONG), TOLL_SUSPECT);
    ck_assert(!toll_bars(7, now));
    ck_assert_int_eq(work(7, LONG), TOLL_BARRED);
    ck_assert(toll_bars(7, now));
    ck_assert(!toll_bars(8, now));
    ck_assert(!toll_bars(0, now));
    ck_assert(toll_bars(7, before + 3 * 100 * LONG - 1));
    ck_assert(!toll_bars(7, before + 5000 * USEC_PER_SEC));
}

TEST(long_calls_with_pauses_bar_nobody)
{
    for (unsigned i = 0; i < 5; i++) {
        (void)work(7, LONG);
        ck_assert_int_eq(work(7, LONG), TOLL_SUSPECT);
        now += 11 * USEC_PER_SEC;
    }
}

TEST(what_others_take_of_the_CPU_bars_nobody)
{
    (void)work(7, LONG);
    for (unsigned i = 0; i < 5; i++) {
        const struct toll toll = toll_begin(now);

        usleep(LONG);
        ck_assert_int_eq(toll_end(toll, now, 7), TOLL_FINE);
    }
}

TEST(the_fault_of_nobody_bars_nobody)
{
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(work(0, LONG), TOLL_SUSPECT);
}
