/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/lane.h"
#include <check.h>

/* What takes long does so by the clock itself: no machine is too fast or too slow for it. */

#define N_PLACES 8

static struct loop *loop;
static struct lane lane;
static struct lane_place places[N_PLACES];
static usec_t takes; /* each of them */
static unsigned order[64], n;
static struct loop_hot hot; /* somebody else's ring */
static unsigned n_polls;

static void on_go(struct lane_place *place)
{
    const usec_t end = usec_add(clock_now(), takes);

    order[n++] = (unsigned)(place - places);
    while (clock_now() < end)
        ;
}

static bool on_poll(struct loop_hot *self)
{
    (void)self;
    n_polls++;
    loop_stop(loop);
    return true;
}

static bool on_cool(struct loop_hot *self)
{
    (void)self;
    return false;
}

static void setup(void)
{
    const struct loop_options options = {0};
    const char *reason;

    ck_assert_int_eq(loop_new(&loop, &options, &reason), 0);
    lane_init(&lane, loop);
    for (unsigned i = 0; i < N_PLACES; i++)
        lane_place_init(&places[i], on_go);
    loop_hot_init(&hot, on_poll, on_cool);
    loop_heat(loop, &hot);
    takes = 0;
    n = n_polls = 0;
}

static void teardown(void)
{
    loop_unheat(loop, &hot);
    lane_deinit(&lane);
    loop_free(loop);
}

static void enter_all(void)
{
    for (unsigned i = 0; i < N_PLACES; i++)
        lane_enter(&lane, &places[i]);
}

static void run_one_turn(void)
{
    ck_assert_int_eq(loop_run(loop), 0);
}

START_TEST(who_is_light_goes_at_once)
{
    lane_enter(&lane, &places[3]);
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(order[0], 3);
    ck_assert(!places[3].heavy);
}
END_TEST

START_TEST(others_have_their_turn_between_any_two_that_take_long)
{
    takes = LANE_TURN;
    enter_all();
    ck_assert_uint_eq(n, 1);
    for (unsigned turn = 1; turn < N_PLACES; turn++) {
        run_one_turn();
        ck_assert_uint_eq(n_polls, turn);
        ck_assert_uint_eq(n, turn + 1);
    }
    for (unsigned i = 0; i < N_PLACES; i++)
        ck_assert_uint_eq(order[i], i);
}
END_TEST

START_TEST(who_took_long_waits_the_next_time_and_who_did_not_goes_before)
{
    takes = LANE_TURN;
    lane_enter(&lane, &places[0]);
    takes = 0;
    run_one_turn();
    lane_enter(&lane, &places[0]);
    ck_assert_uint_eq(n, 1);
    lane_enter(&lane, &places[1]);
    ck_assert_uint_eq(n, 2);
    run_one_turn();
    ck_assert_uint_eq(n, 3);
    ck_assert_uint_eq(order[2], 0);
    lane_enter(&lane, &places[0]); /* light again */
    ck_assert_uint_eq(n, 4);
}
END_TEST

START_TEST(who_leaves_does_not_go)
{
    takes = LANE_TURN;
    enter_all();
    for (unsigned i = 1; i < N_PLACES; i++)
        lane_leave(&places[i]);
    run_one_turn();
    run_one_turn();
    ck_assert_uint_eq(n, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lane");
    TCase *cases = tcase_create("lane");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, who_is_light_goes_at_once);
    tcase_add_test(cases, others_have_their_turn_between_any_two_that_take_long);
    tcase_add_test(cases, who_took_long_waits_the_next_time_and_who_did_not_goes_before);
    tcase_add_test(cases, who_leaves_does_not_go);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
