/* SPDX-License-Identifier: MIT */
#include "tests/unit/fixture.h"

#include "shared/base/log.h"
#include "tests/unit/suite.h"

struct loop *new_loop(void)
{
    struct loop *loop;
    const char *reason;

    ck_assert_int_eq(loop_new(&loop, &(struct loop_options){0}, &reason), 0);
    return loop;
}

static void on_give_up(struct timer *timer, usec_t now)
{
    ck_abort_msg("nothing happened any more");
}

void give_up_after(struct loop *loop, usec_t duration)
{
    static struct timer timer = {.node.key = USEC_INFINITY, .fn = on_give_up};

    timer_disarm(loop_timers(loop), &timer);
    if (duration != USEC_INFINITY)
        ck_assert_int_eq(timer_arm(loop_timers(loop), &timer, clock_now() + duration), 0);
}

static void discard(enum log_level level, struct log_fields fields, const char *message)
{
}

void log_nothing(void)
{
    log_set_sink(discard);
}
