/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/alarm.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* How often dates are compared with the clock if there is no timerfd. */
#define LOOK_AGAIN (10 * USEC_PER_SEC)

/* How many alarms of each kind go off in one turn, and how long those after the first may take.
 * Most take a few microseconds, but one may copy a large message. */
#define ALARMS_PER_TURN 128
#define ALARMS_USEC     USEC_PER_MSEC

static usec_t now_of(const struct alarms *alarms)
{
    return loop_now(alarms->loop);
}

/* A timer that never expires, but is cancelled when the clock is set. */
static int arm_fd(int fd)
{
    const struct itimerspec never = {.it_value = {.tv_sec = INT64_MAX / 1000000000}};

    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) < 0
               ? -errno
               : 0;
}

static void stop_watching(struct alarms *alarms)
{
    loop_unwatch(alarms->loop, &alarms->watch);
    alarms->fd = close_fd(alarms->fd);
}

static void on_clock_set(void *userdata, uint32_t events)
{
    struct alarms *alarms = userdata;
    uint64_t ignored;

    (void)!read(alarms->fd, &ignored, sizeof(ignored)); /* ECANCELED */
    if (arm_fd(alarms->fd) < 0)
        stop_watching(alarms);
    alarms_review(alarms);
}

static void watch_clock(struct alarms *alarms)
{
    _cleanup_close_ int fd = -1;
    int r;

    if (alarms->fd >= 0)
        return;
    fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    r = fd < 0 ? -errno : arm_fd(fd);
    if (r == 0)
        r = loop_watch_fd(alarms->loop, &alarms->watch, fd, POLLIN, on_clock_set, alarms);
    if (r == 0)
        alarms->fd = TAKE_FD(fd);
    else
        log_notice("a change of the clock will be noticed late: %s", strerror(-r));
}

/* Returns when to review the earliest date, monotonic. */
static usec_t next_date(const struct alarms *alarms)
{
    const usec_t date = timer_queue_next(&alarms->dates);
    usec_t left;

    if (date == USEC_INFINITY)
        return USEC_INFINITY;
    left = usec_sub(date, alarms->realtime());
    if (alarms->fd < 0 && left > LOOK_AGAIN)
        left = LOOK_AGAIN;
    return usec_add(now_of(alarms), left);
}

/* Arms `next` for the earliest alarm, in the next turn at the earliest. */
static void arm_next(struct alarms *alarms)
{
    const usec_t delay = timer_queue_next(&alarms->delays), date = next_date(alarms);
    const usec_t at = delay < date ? delay : date, soonest = now_of(alarms) + 1;

    if (timer_armed(&alarms->next) && timer_at(&alarms->next) == at)
        return;
    timer_arm(loop_timers(alarms->loop), &alarms->next, at > soonest ? at : soonest);
}

static void go_off(struct alarms *alarms, usec_t now)
{
    const usec_t date = alarms->realtime(), until = usec_add(clock_now(), ALARMS_USEC);

    for (unsigned n = 0; n < ALARMS_PER_TURN; n++) {
        timer_queue_run(&alarms->delays, now, 1);
        timer_queue_run(&alarms->dates, date, 1);
        if ((timer_queue_next(&alarms->delays) > now && timer_queue_next(&alarms->dates) > date) ||
            clock_now() >= until)
            break;
    }
    arm_next(alarms);
}

static void on_timer(struct timer *timer, usec_t now)
{
    struct alarm *alarm = list_entry(timer, struct alarm, timer);

    alarm->fn(alarm);
}

static void on_next(struct timer *timer, usec_t now)
{
    go_off(list_entry(timer, struct alarms, next), now);
}

void alarms_init(struct alarms *alarms, struct loop *loop)
{
    *alarms = (struct alarms){.loop = loop,
                              .realtime = clock_realtime,
                              .delays = TIMER_QUEUE_NULL,
                              .dates = TIMER_QUEUE_NULL,
                              .fd = -1,
                              .watch = LOOP_WATCH_NULL};
    timer_init(&alarms->next, on_next);
}

void alarms_deinit(struct alarms *alarms)
{
    timer_disarm(loop_timers(alarms->loop), &alarms->next);
    if (alarms->fd >= 0)
        stop_watching(alarms);
}

void alarm_init(struct alarm *alarm, struct alarms *alarms, void (*fn)(struct alarm *alarm))
{
    *alarm = (struct alarm){.alarms = alarms, .fn = fn};
    timer_init(&alarm->timer, on_timer);
}

void alarm_set_after(struct alarm *alarm, usec_t delay)
{
    struct alarms *alarms = alarm->alarms;

    alarm->delay = delay > 0 ? delay : 1;
    alarm->date = usec_add(clock_steady(), delay);
    timer_arm(&alarms->delays, &alarm->timer, usec_add(now_of(alarms), delay));
    arm_next(alarms);
}

void alarm_set_at(struct alarm *alarm, usec_t date)
{
    struct alarms *alarms = alarm->alarms;

    watch_clock(alarms);
    alarm->delay = 0;
    alarm->date = date;
    timer_arm(&alarms->dates, &alarm->timer, date);
    arm_next(alarms);
}

usec_t alarm_realtime(const struct alarm *alarm)
{
    return alarm->delay == 0 ? alarm->date : clock_steady_to_realtime(alarm->date);
}

void alarm_stop(struct alarm *alarm)
{
    struct alarms *alarms = alarm->alarms;

    if (!alarms)
        return;
    timer_disarm(alarm->delay == 0 ? &alarms->dates : &alarms->delays, &alarm->timer);
    /* `next` stays armed, since a review that is too early does no harm. */
}

void alarms_review(struct alarms *alarms)
{
    go_off(alarms, now_of(alarms));
    if (alarms->reviewed)
        alarms->reviewed(alarms->userdata);
}
