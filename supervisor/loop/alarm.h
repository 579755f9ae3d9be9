/* SPDX-License-Identifier: MIT */
#pragma once

/* Alarms: one-shot, after a delay or at a date. Delays use the monotonic clock. Dates follow the
 * wall clock: a timerfd reports when the clock is set or the machine has slept, and they are
 * reviewed. Alarms of the same date go off in the order in which they were set, a bounded number
 * per turn; the loop's own timers do not wait for them. */

#include "shared/base/clock.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>

struct alarms {
    struct loop *loop;
    usec_t (*realtime)(void);  /* clock_realtime(), except in tests */
    struct timer_queue delays; /* alarms after a time, monotonic */
    struct timer_queue dates;  /* alarms with a date, in realtime */
    struct timer next;         /* no later than the earliest alarm */
    int fd;                    /* timerfd that reports a set clock; -1 = not needed yet */
    struct loop_watch watch;
    /* Called by alarms_review(): dates that have not come may need another look. NULL = no. */
    void (*reviewed)(void *userdata);
    void *userdata;
};

struct alarm {
    struct timer timer; /* among the delays or the dates */
    struct alarms *alarms;
    usec_t date;  /* when it goes off, or went off: realtime; for a delay, by clock_steady() */
    usec_t delay; /* the whole delay; 0 = it has a date */
    void (*fn)(struct alarm *alarm);
};

void alarms_init(struct alarms *alarms, struct loop *loop);
void alarms_deinit(struct alarms *alarms); /* all alarms are stopped */

void alarm_init(struct alarm *alarm, struct alarms *alarms, void (*fn)(struct alarm *alarm));

/* For a stopped alarm. A date in the past goes off in the next turn. */
void alarm_set_after(struct alarm *alarm, usec_t delay);
void alarm_set_at(struct alarm *alarm, usec_t date);

/* Returns when it goes off, or last went off: realtime, as the clock is set now. */
usec_t alarm_realtime(const struct alarm *alarm);

/* Idempotent. */
void alarm_stop(struct alarm *alarm);

/* Reviews all dates: the wall clock was set. */
void alarms_review(struct alarms *alarms);
