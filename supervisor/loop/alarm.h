/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Alarms: they go off once, after a time or at a date. Times are measured by the monotonic clock,
 * whatever is done to the wall clock; dates follow the wall clock: when somebody sets it, or the
 * machine has slept, they are looked at again (by a timerfd that the kernel cancels then). Those of
 * the same date go off in the order in which they were set. A turn of the loop lets a bounded
 * number go off, and the loop's own timers do not wait for them.
 */

#include "shared/base/clock.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>

struct alarms {
    struct loop *loop;
    usec_t (*realtime)(void);  /* clock_realtime() but for tests */
    struct timer_queue delays; /* alarms after a time, monotonic */
    struct timer_queue dates;  /* alarms with a date, in realtime */
    struct timer next;         /* when to look at the earliest of them, or before */
    int fd;                    /* tells that the clock was set; -1 = not needed so far */
    struct loop_watch watch;
};

struct alarm {
    struct timer timer; /* among the delays or the dates */
    bool has_date;
    struct alarms *alarms;
    usec_t date; /* realtime: when it goes off, as the clock stands (or stood, for a time) */
    void (*fn)(struct alarm *alarm);
};

void alarms_init(struct alarms *alarms, struct loop *loop);
void alarms_deinit(struct alarms *alarms); /* all stopped */

void alarm_init(struct alarm *alarm, struct alarms *alarms, void (*fn)(struct alarm *alarm));

/* On a stopped alarm. 0 or -ENOMEM. A date that has passed goes off in the next turn. */
int alarm_set_after(struct alarm *alarm, usec_t delay);
int alarm_set_at(struct alarm *alarm, usec_t date);

/* Allowed when not set. */
void alarm_stop(struct alarm *alarm);

/* The wall clock was set: looks at all dates again. */
void alarms_review(struct alarms *alarms);
