/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/notify.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define RETRY_AFTER (100 * USEC_PER_MSEC)

/* In the order in which they are sent. */
enum {
    PENDING_RELOADING = 1u << 0,
    PENDING_READY = 1u << 1,
    PENDING_STOPPING = 1u << 2,
    PENDING_WATCHDOG = 1u << 3,
};

/* Returns 0 also if the manager has gone: it will not come back under this name. */
static int send_text(struct notify *notify, const char *text)
{
    ssize_t n = send(notify->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
    return n < 0 && (errno == EAGAIN || errno == ENOBUFS) ? -EAGAIN : 0;
}

static int send_state(struct notify *notify, unsigned state)
{
    char text[64];
    switch (state) {
    case PENDING_RELOADING:
        (void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                       notify->reloading_at);
        return send_text(notify, text);
    case PENDING_READY:
        return send_text(notify, "READY=1");
    case PENDING_STOPPING:
        return send_text(notify, "STOPPING=1");
    default:
        return send_text(notify, "WATCHDOG=1");
    }
}

static int send_status(struct notify *notify)
{
    char text[NOTIFY_STATUS_MAX + 8];
    (void)snprintf(text, sizeof(text), "STATUS=%s", notify->status);
    return send_text(notify, text);
}

/* One datagram per state: within one, the manager would choose the order. */
static void send_pending(struct notify *notify, usec_t now)
{
    int r = 0;
    for (unsigned state = PENDING_RELOADING; state <= PENDING_WATCHDOG && r == 0; state <<= 1) {
        if (!(notify->pending & state))
            continue;
        r = send_state(notify, state);
        if (r == 0)
            notify->pending &= ~state;
    }
    if (r == 0 && notify->status_changed) {
        r = send_status(notify);
        notify->status_changed = r < 0;
    }
    /* Without memory for the timer, the next call sends it. */
    if (r < 0)
        (void)timer_arm(notify->timers, &notify->retry, usec_add(now, RETRY_AFTER));
}

static void notify_on_retry(struct timer *timer, usec_t now)
{
    send_pending((struct notify *)((char *)timer - offsetof(struct notify, retry)), now);
}

void notify_alive(struct notify *notify, usec_t now)
{
    if (notify->watchdog_interval == 0)
        return;
    notify->pending |= PENDING_WATCHDOG;
    send_pending(notify, now);
}

static void notify_on_watchdog(struct timer *timer, usec_t now)
{
    struct notify *notify = (struct notify *)((char *)timer - offsetof(struct notify, watchdog));
    /* Cannot fail: the timer was in the queue just now. */
    (void)timer_arm(notify->timers, timer, usec_add(now, notify->watchdog_interval));
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
    *notify = (struct notify){.timers = timers, .fd = -1};
    timer_init(&notify->retry, notify_on_retry);
    timer_init(&notify->watchdog, notify_on_watchdog);
    if (fd < 0)
        return 0;
    int r = watchdog_from_environment(&timeout);
    if (r < 0)
        return r;
    if (timeout > 1) {
        notify->watchdog_interval = timeout / 2;
        r = timer_arm(timers, &notify->watchdog, now);
        if (r < 0)
            return r;
    }
    notify->fd = TAKE_FD(taken);
    return 0;
}

void notify_deinit(struct notify *notify)
{
    if (notify->fd < 0)
        return;
    timer_disarm(notify->timers, &notify->retry);
    timer_disarm(notify->timers, &notify->watchdog);
    notify->fd = close_fd(notify->fd);
}

bool notify_wanted(const struct notify *notify)
{
    return notify->fd >= 0;
}

void notify_ready(struct notify *notify, usec_t now)
{
    if (notify->fd < 0)
        return;
    notify->pending |= PENDING_READY;
    send_pending(notify, now);
}

void notify_reloading(struct notify *notify, usec_t now)
{
    if (notify->fd < 0)
        return;
    /* An unsent READY=1 would follow, and end the reload too early. */
    notify->pending &= ~(unsigned)PENDING_READY;
    notify->pending |= PENDING_RELOADING;
    notify->reloading_at = now;
    send_pending(notify, now);
}

void notify_stopping(struct notify *notify, usec_t now)
{
    if (notify->fd < 0)
        return;
    notify->pending = PENDING_STOPPING;
    send_pending(notify, now);
}

void notify_status(struct notify *notify, usec_t now, const char *format, ...)
{
    char status[NOTIFY_STATUS_MAX];
    va_list arguments;
    if (notify->fd < 0)
        return;
    va_start(arguments, format);
    (void)vsnprintf(status, sizeof(status), format, arguments);
    va_end(arguments);
    status[strcspn(status, "\n")] = '\0';
    if (strcmp(status, notify->status) == 0)
        return;
    strcpy(notify->status, status);
    notify->status_changed = true;
    send_pending(notify, now);
}
