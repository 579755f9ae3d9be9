/* SPDX-License-Identifier: MIT */
#include "alarm.h"

#include "../shared/cleanup.h"
#include "../shared/log.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Without a timerfd: how often a date is compared with the clock. */
#define LOOK_AGAIN (10 * USEC_PER_SEC)

static usec_t now_of(const struct alarms *alarms)
{
    return loop_now(alarms->loop);
}

/* ---- the wall clock ---- */

/* Never expires: all that is wanted of it is that it is cancelled when the clock is set. */
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

    (void)events;
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

/* ---- alarms ---- */

/* When to look at a date again. */
static usec_t date_due(const struct alarm *alarm)
{
    const struct alarms *alarms = alarm->alarms;
    usec_t left = usec_sub(alarm->date, alarms->realtime());

    if (alarms->fd < 0 && left > LOOK_AGAIN)
        left = LOOK_AGAIN;
    return usec_add(now_of(alarms), left);
}

static int arm(struct alarm *alarm, usec_t due)
{
    return timer_arm(loop_timers(alarm->alarms->loop), &alarm->timer, due);
}

static void on_timer(struct timer *timer, usec_t now)
{
    struct alarm *alarm = list_entry(timer, struct alarm, timer);

    (void)now;
    if (list_linked(&alarm->link) && alarm->alarms->realtime() < alarm->date &&
        arm(alarm, date_due(alarm)) == 0)
        return;
    list_unlink(&alarm->link);
    alarm->fn(alarm);
}

void alarms_init(struct alarms *alarms, struct loop *loop)
{
    *alarms = (struct alarms){
        .loop = loop, .realtime = clock_realtime, .fd = -1, .watch = LOOP_WATCH_NULL};
    list_init(&alarms->dates);
}

void alarms_deinit(struct alarms *alarms)
{
    if (alarms->fd >= 0)
        stop_watching(alarms);
}

void alarm_init(struct alarm *alarm, struct alarms *alarms, void (*fn)(struct alarm *alarm))
{
    *alarm = (struct alarm){.alarms = alarms, .fn = fn};
    timer_init(&alarm->timer, on_timer);
    list_init(&alarm->link);
}

int alarm_set_after(struct alarm *alarm, usec_t delay)
{
    alarm->date = usec_add(alarm->alarms->realtime(), delay);
    return arm(alarm, usec_add(now_of(alarm->alarms), delay));
}

int alarm_set_at(struct alarm *alarm, usec_t date)
{
    int r;

    watch_clock(alarm->alarms);
    alarm->date = date;
    r = arm(alarm, date_due(alarm));
    if (r == 0)
        list_push_back(&alarm->alarms->dates, &alarm->link);
    return r;
}

void alarm_stop(struct alarm *alarm)
{
    if (!alarm->alarms)
        return;
    timer_disarm(loop_timers(alarm->alarms->loop), &alarm->timer);
    list_unlink(&alarm->link);
}

void alarms_review(struct alarms *alarms)
{
    /* Each is armed: to arm it again takes no memory. */
    list_for_each (node, &alarms->dates) {
        struct alarm *alarm = list_entry(node, struct alarm, link);

        (void)arm(alarm, date_due(alarm));
    }
}
