/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/timer.h"
#include "tests/unit/suite.h"
#include <sys/resource.h>

#define N_TIMERS 500

static struct timer timers[N_TIMERS];
static unsigned fired[N_TIMERS];
static usec_t last_at;
static struct timer_queue *current;

static void on_timer(struct timer *timer, usec_t now)
{
    ck_assert(!timer_armed(timer));
    ck_assert_uint_le(timer_at(timer), now);
    ck_assert_uint_ge(timer_at(timer), last_at);
    last_at = timer_at(timer);
    fired[timer - timers]++;
}

static void on_rearm_now(struct timer *timer, usec_t now)
{
    fired[timer - timers]++;
    timer_arm(current, timer, now);
}

static void on_disarm_second(struct timer *timer, usec_t now)
{
    fired[timer - timers]++;
    timer_disarm(current, &timers[1]);
}

TEST(arming_for_infinity_disarms)
{
    struct timer_queue queue = TIMER_QUEUE_NULL;
    timer_init(&timers[0], on_timer);
    timer_arm(&queue, &timers[0], 5);
    timer_arm(&queue, &timers[0], USEC_INFINITY);
    ck_assert(!timer_armed(&timers[0]));
    ck_assert_uint_eq(timer_queue_next(&queue), USEC_INFINITY);
    timer_disarm(&queue, &timers[0]);
}

TEST(a_timer_that_rearms_itself_for_the_past_fires_once_a_run)
{
    struct timer_queue queue = TIMER_QUEUE_NULL;
    current = &queue;
    timer_init(&timers[0], on_rearm_now);
    timer_arm(&queue, &timers[0], 1);
    timer_queue_run(&queue, 10, SIZE_MAX);
    ck_assert_uint_eq(fired[0], 1);
    ck_assert(timer_armed(&timers[0]));
}

TEST(a_callback_may_disarm_another_that_is_due)
{
    struct timer_queue queue = TIMER_QUEUE_NULL;
    current = &queue;
    timer_init(&timers[0], on_disarm_second);
    timer_init(&timers[1], on_timer);
    timer_arm(&queue, &timers[0], 1);
    timer_arm(&queue, &timers[1], 2);
    timer_queue_run(&queue, 10, SIZE_MAX);
    ck_assert_uint_eq(fired[0], 1);
    ck_assert_uint_eq(fired[1], 0);
}

#ifndef __SANITIZE_ADDRESS__ /* it needs memory itself */
TEST(timers_are_armed_without_memory)
{
    struct timer_queue queue = TIMER_QUEUE_NULL;
    struct rlimit limit, none;

    for (int i = 0; i < N_TIMERS; i++)
        timer_init(&timers[i], on_timer);
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &limit), 0);
    none = (struct rlimit){.rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
    for (size_t size = 1 << 20; size > 0; size /= 2)
        while (malloc(size))
            continue;
    for (int i = 0; i < N_TIMERS; i++)
        timer_arm(&queue, &timers[i], 1);
    (void)setrlimit(RLIMIT_AS, &limit);
    timer_queue_run(&queue, 1, SIZE_MAX);
    for (int i = 0; i < N_TIMERS; i++)
        ck_assert_uint_eq(fired[i], 1);
}
#endif

/* Against the plainest model there is: a table of times. */
TEST(behaves_as_a_table_of_times_under_random_use)
{
    struct timer_queue queue = TIMER_QUEUE_NULL;
    usec_t model[N_TIMERS], now = 0;
    unsigned expected[N_TIMERS] = {0};
    srand(4711);
    printf("seed 4711\n");
    for (int i = 0; i < N_TIMERS; i++) {
        timer_init(&timers[i], on_timer);
        model[i] = USEC_INFINITY;
    }
    for (int step = 0; step < 20000; step++) {
        int i = rand() % N_TIMERS;
        int what = rand() % 10;
        if (what < 6) {
            model[i] = now + 1 + (usec_t)(rand() % 1000);
            timer_arm(&queue, &timers[i], model[i]);
        } else if (what < 8) {
            model[i] = USEC_INFINITY;
            timer_disarm(&queue, &timers[i]);
        } else {
            now += (usec_t)(rand() % 20);
            for (int k = 0; k < N_TIMERS; k++) {
                if (model[k] <= now) {
                    model[k] = USEC_INFINITY;
                    expected[k]++;
                }
            }
            timer_queue_run(&queue, now, SIZE_MAX);
        }
        usec_t next = USEC_INFINITY;
        for (int k = 0; k < N_TIMERS; k++)
            next = model[k] < next ? model[k] : next;
        ck_assert_uint_eq(timer_queue_next(&queue), next);
    }
    for (int i = 0; i < N_TIMERS; i++) {
        ck_assert_uint_eq(fired[i], expected[i]);
        ck_assert_int_eq(timer_armed(&timers[i]), model[i] != USEC_INFINITY);
    }
}
