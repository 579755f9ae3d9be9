/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/notify.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static void send_pending(struct notify *notify, usec_t now)
{
    if (!service_manager_send(&notify->manager))
        timer_arm(notify->timers, &notify->retry, usec_add(now, SERVICE_MANAGER_RETRY));
}

static void notify_on_retry(struct timer *timer, usec_t now)
{
    send_pending((struct notify *)((char *)timer - offsetof(struct notify, retry)), now);
}

void notify_alive(struct notify *notify, usec_t now)
{
    if (notify->watchdog_interval == 0)
        return;
    service_manager_tell(&notify->manager, SERVICE_ALIVE, now);
    send_pending(notify, now);
}

static void notify_on_watchdog(struct timer *timer, usec_t now)
{
    struct notify *notify = (struct notify *)((char *)timer - offsetof(struct notify, watchdog));
    timer_arm(notify->timers, timer, usec_add(now, notify->watchdog_interval));
    notify_alive(notify, now);
}

static int parse_unsigned(const char *text, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-')
        return -EINVAL;
    *ret = value;
    return 0;
}

/* 0 with *ret 0 if the manager does not watch this process; or -EINVAL. */
static int watchdog_from_environment(usec_t *ret)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    uint64_t watched = (uint64_t)getpid();
    *ret = 0;
    if (!usec)
        return 0;
    if (pid && parse_unsigned(pid, &watched) < 0)
        return -EINVAL;
    if (watched != (uint64_t)getpid())
        return 0;
    return parse_unsigned(usec, ret);
}

int notify_init(struct notify *notify, struct timer_queue *timers, usec_t now, int fd)
{
    _cleanup_close_ int taken = fd;
    usec_t timeout;
    *notify = (struct notify){.timers = timers, .manager = SERVICE_MANAGER_NULL};
    timer_init(&notify->retry, notify_on_retry);
    timer_init(&notify->watchdog, notify_on_watchdog);
    if (fd < 0)
        return 0;
    int r = watchdog_from_environment(&timeout);
    if (r < 0)
        return r;
    if (timeout > 1) {
        notify->watchdog_interval = timeout / 2;
        timer_arm(timers, &notify->watchdog, now);
    }
    notify->manager.fd = TAKE_FD(taken);
    return 0;
}

void notify_deinit(struct notify *notify)
{
    if (notify->manager.fd < 0)
        return;
    timer_disarm(notify->timers, &notify->retry);
    timer_disarm(notify->timers, &notify->watchdog);
    service_manager_close(&notify->manager);
}

bool notify_wanted(const struct notify *notify)
{
    return notify->manager.fd >= 0;
}

void notify_tell(struct notify *notify, enum service_state state, usec_t now)
{
    service_manager_tell(&notify->manager, state, now);
    send_pending(notify, now);
}

void notify_status(struct notify *notify, usec_t now, const char *format, ...)
{
    char status[SERVICE_STATUS_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(status, sizeof(status), format, arguments);
    va_end(arguments);
    service_manager_status(&notify->manager, status);
    send_pending(notify, now);
}
