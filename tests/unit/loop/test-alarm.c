/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/alarm.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"

#define NOW ((usec_t)1000 * USEC_PER_SEC)

static struct loop *loop;
static struct alarms alarms;
static struct alarm first, second;
static usec_t wall; /* what the wall clock shows */
static unsigned n_fired;

static usec_t fake_realtime(void)
{
    return wall;
}

static void fired(struct alarm *alarm)
{
    n_fired++;
    loop_stop(loop);
}

static void setup(void)
{
    loop = new_loop();
    alarms_init(&alarms, loop);
    alarms.realtime = fake_realtime;
    wall = NOW;
    n_fired = 0;
    alarm_init(&first, &alarms, fired);
    alarm_init(&second, &alarms, fired);
    give_up_after(loop, 20 * USEC_PER_SEC);
}

static void teardown(void)
{
    alarm_stop(&first);
    alarm_stop(&second);
    alarms_deinit(&alarms);
    give_up_after(loop, USEC_INFINITY);
    loop_free(loop);
}

/* The monotonic time until the earliest date is looked at. */
static usec_t left(void)
{
    return usec_sub(timer_at(&alarms.next), loop_now(loop));
}

TEST(one_goes_off_after_its_time_whatever_the_clock_says)
{
    alarm_set_after(&first, USEC_PER_MSEC);
    ck_assert_uint_eq(first.delay, USEC_PER_MSEC);
    wall = 1;
    alarms_review(&alarms);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_fired, 1);
    ck_assert_int_lt(alarms.fd, 0);
}

TEST(a_date_that_has_passed_goes_off_at_once)
{
    alarm_set_at(&first, NOW - 1);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_fired, 1);
    ck_assert(!timer_armed(&first.timer));
}

TEST(a_clock_that_is_set_forward_brings_a_date_nearer)
{
    alarm_set_at(&first, NOW + 3600 * USEC_PER_SEC);
    alarm_set_at(&second, NOW + 9000 * USEC_PER_SEC);
    ck_assert_uint_eq(left(), 3600 * USEC_PER_SEC);
    wall = NOW + 3600 * USEC_PER_SEC;
    alarms_review(&alarms);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_fired, 1);
    ck_assert(timer_armed(&second.timer));
}

TEST(a_clock_that_is_set_back_puts_a_date_off)
{
    alarm_set_at(&first, NOW + 5 * USEC_PER_SEC);
    wall = NOW - 100 * USEC_PER_SEC;
    alarms_review(&alarms);
    ck_assert_uint_eq(left(), 105 * USEC_PER_SEC);
}

TEST(one_that_is_due_too_early_by_the_clock_is_set_again)
{
    alarm_set_at(&first, NOW + 1);
    wall = NOW - 50 * USEC_PER_SEC; /* and nobody has told us */
    alarms.next.fn(&alarms.next, loop_now(loop));
    ck_assert_uint_eq(n_fired, 0);
    ck_assert_uint_eq(left(), 50 * USEC_PER_SEC + 1);
}

TEST(one_that_goes_off_at_once_has_no_date)
{
    alarm_set_after(&first, 0);
    ck_assert_uint_gt(first.delay, 0);
    alarm_stop(&first);
    ck_assert_uint_eq(alarms.delays.heap.n_nodes, 0);
    ck_assert_uint_eq(alarms.dates.heap.n_nodes, 0);
}

TEST(a_stopped_one_does_not_go_off)
{
    alarm_set_at(&first, NOW);
    alarm_set_after(&second, USEC_PER_MSEC);
    alarm_stop(&first);
    alarm_stop(&first);
    ck_assert(!timer_armed(&first.timer));
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_fired, 1);
    ck_assert(!timer_armed(&second.timer));
}

static struct alarm many[100];
static unsigned n_in_order;

static void fired_in_turn(struct alarm *alarm)
{
    ck_assert_ptr_eq(alarm, &many[n_in_order]);
    if (++n_in_order == 100)
        loop_stop(loop);
}

/* The clock goes on between them, as it does. */
TEST(those_of_one_date_go_off_in_the_order_in_which_they_were_set)
{
    n_in_order = 0;
    for (unsigned i = 0; i < 100; i++) {
        wall = NOW + 7 * i;
        alarm_init(&many[i], &alarms, fired_in_turn);
        alarm_set_at(&many[i], NOW + USEC_PER_SEC);
    }
    wall = NOW + 2 * USEC_PER_SEC;
    alarms_review(&alarms);
    if (n_in_order < 100)
        ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_in_order, 100);
}

/* By a nanosecond: a change of the clock all the same. */
static usec_t turn_of_first;

static void take_long(struct alarm *alarm)
{
    const usec_t until = clock_now() + 10 * USEC_PER_MSEC;

    if (n_fired++ > 0) {
        ck_assert_uint_ne(loop_now(loop), turn_of_first);
        loop_stop(loop);
    }
    turn_of_first = loop_now(loop);
    while (clock_now() < until)
        ;
}

TEST(those_that_take_long_go_off_in_different_turns)
{
    first.fn = second.fn = take_long;
    alarm_set_at(&first, NOW - 1);
    alarm_set_at(&second, NOW - 1);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_fired, 2);
}

TEST(the_kernel_tells_that_the_clock_was_set)
{
    struct timex step = {.modes = ADJ_SETOFFSET | ADJ_NANO, .time.tv_usec = 1};

    alarm_set_at(&first, NOW + 3600 * USEC_PER_SEC);
    ck_assert_int_ge(alarms.fd, 0);
    wall = NOW + 3600 * USEC_PER_SEC;
    if (clock_adjtime(CLOCK_REALTIME, &step) < 0) {
        ck_assert_int_eq(errno, EPERM);
        return; /* nobody may do so here */
    }
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_eq(n_fired, 1);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
