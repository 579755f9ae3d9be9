/* SPDX-License-Identifier: MIT */

/* The back end that waits with epoll. */

#include "shared/base/cleanup.h"
#include "supervisor/loop/loop-slot.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

/* While there is work, how often to look for events: each look is a system call. */
#define FETCH_INTERVAL_USEC 10

/* How often to try again after a shortage of descriptors or memory in the kernel. */
#define SHORTAGE_INTERVAL (10 * USEC_PER_MSEC)

int loop_epoll_init(struct loop_epoll *epoll)
{
    epoll->fd = epoll_create1(EPOLL_CLOEXEC);
    list_init(&epoll->failed);
    return epoll->fd < 0 ? -errno : 0;
}

static void deinit(struct loop *loop)
{
    close_fd(loop->epoll.fd);
}

/* The numbers of poll(2) and epoll(7) are the same. */
_Static_assert(POLLIN == EPOLLIN && POLLOUT == EPOLLOUT && POLLERR == EPOLLERR &&
                   POLLHUP == EPOLLHUP && POLLRDHUP == EPOLLRDHUP && POLLPRI == EPOLLPRI,
               "events are passed on unchanged");

static int control(struct loop *loop, int operation, const struct watch_slot *slot)
{
    struct epoll_event event = {
        .events = slot->kind == WATCH_COUNTER ? EPOLLIN | (uint32_t)EPOLLET : slot->events,
        .data.u64 = loop_slot_id(slot),
    };
    return epoll_ctl(loop->epoll.fd, operation, slot->set_fd, &event) < 0 ? -errno : 0;
}

/* A descriptor can be in the set once only: a second watch adds a duplicate. */
static int add(struct loop *loop, struct watch_slot *slot)
{
    slot->set_fd = slot->fd;
    int r = control(loop, EPOLL_CTL_ADD, slot);
    if (r != -EEXIST)
        return r;
    slot->set_fd = fcntl(slot->fd, F_DUPFD_CLOEXEC, 0);
    if (slot->set_fd < 0)
        return -errno;
    r = control(loop, EPOLL_CTL_ADD, slot);
    if (r < 0)
        close_fd(slot->set_fd);
    return r;
}

static void take_out(struct loop *loop, struct watch_slot *slot)
{
    if (!slot->in_set)
        return;
    (void)control(loop, EPOLL_CTL_DEL, slot);
    if (slot->set_fd != slot->fd)
        close_fd(slot->set_fd);
    slot->in_set = false;
}

static bool is_shortage(int error)
{
    return error == -ENOMEM || error == -ENOSPC || error == -EMFILE || error == -ENFILE;
}

/* Returns false if the kernel has no room for the watch, which then stays in its list. */
static bool arm_one(struct loop *loop, struct watch_slot *slot)
{
    int r = 0;
    if (!slot->in_set)
        r = add(loop, slot);
    else if (slot->armed_events != slot->events)
        r = control(loop, EPOLL_CTL_MOD, slot);
    if (is_shortage(r))
        return false;
    if (r == 0)
        slot->in_set = true;
    /* A refused descriptor is armed for nothing: a change of its events tries again. */
    slot->armed_events = r == 0 ? slot->events : 0;
    loop_slot_move(slot, WATCH_ARMED, r == 0 ? NULL : &loop->epoll.failed);
    return true;
}

static bool arm_all(struct loop *loop, struct list *list)
{
    bool all = true;
    list_for_each_entry_safe (slot, list, struct watch_slot, link)
        all &= arm_one(loop, slot);
    return all;
}

/* After a shortage, the rest is tried again a little later. */
static bool arm(struct loop *loop)
{
    if (loop->now < loop->epoll.retry_at)
        return true;
    const bool updated = arm_all(loop, &loop->updates), armed = arm_all(loop, &loop->pending);
    loop->epoll.retry_at = updated && armed ? 0 : usec_add(loop->now, SHORTAGE_INTERVAL);
    return true;
}

/* Immediately, since the set would keep a descriptor whose file another process has open. */
static void unwatch(struct loop *loop, struct watch_slot *slot)
{
    take_out(loop, slot);
    loop_slot_give_back(loop, slot);
}

static int take_events(struct loop *loop, int n)
{
    loop->epoll.n_events = n < 0 ? 0 : n;
    loop->epoll.fetched_at = loop->now;
    return n < 0 ? -errno : 0;
}

static int fetch(struct loop *loop, bool all)
{
    if (!all && loop->now - loop->epoll.fetched_at < FETCH_INTERVAL_USEC)
        return 0;
    return take_events(loop, epoll_wait(loop->epoll.fd, loop->epoll.events, LOOP_EPOLL_EVENTS, 0));
}

static int sleep_in_epoll(struct loop *loop, usec_t timeout)
{
    struct loop_epoll *epoll = &loop->epoll;
    if (epoll->retry_at != 0 && timeout > SHORTAGE_INTERVAL)
        timeout = SHORTAGE_INTERVAL;
    const struct timespec limit = usec_to_timespec(timeout);
    int n = epoll_pwait2(epoll->fd, epoll->events, LOOP_EPOLL_EVENTS,
                         timeout == USEC_INFINITY ? NULL : &limit, NULL);
    /* The filter of an old container may forbid it; epoll_wait(2) knows only milliseconds. */
    if (n < 0 && (errno == ENOSYS || errno == EPERM))
        n = epoll_wait(epoll->fd, epoll->events, LOOP_EPOLL_EVENTS,
                       timeout < USEC_PER_SEC ? (int)(timeout / USEC_PER_MSEC) + 1 : 1000);
    return take_events(loop, n);
}

static bool has_events(const struct loop *loop)
{
    return loop->epoll.n_events > 0 || !list_empty(&loop->epoll.failed);
}

static void pass_on_one(struct loop *loop, const struct epoll_event *event)
{
    struct watch_slot *slot = loop_slot_find(loop, event->data.u64);
    if (!slot || slot->state == WATCH_FIRED)
        return;
    if (slot->kind == WATCH_COUNTER) {
        loop_slot_complete(loop, slot, event->events & EPOLLERR ? -EIO : (int)sizeof(uint64_t));
    } else if (slot->events == 0) {
        /* Paused. The set would continue to report errors. */
        take_out(loop, slot);
        loop_slot_move(slot, WATCH_RESTING, NULL);
    } else if (slot->state != WATCH_PENDING) { /* else the next look reports it again */
        loop_slot_complete(loop, slot, (int)event->events);
    }
}

/* Refused watches stay in a turn's list only until they are armed, and refused, again. */
static void pass_on_failed(struct loop *loop)
{
    struct list failed;
    list_init(&failed);
    loop_take_all(&failed, &loop->epoll.failed);
    while (!list_empty(&failed))
        loop_slot_complete(loop, loop_slot_first(&failed), -EBADF);
}

static bool pass_on(struct loop *loop)
{
    struct loop_epoll *epoll = &loop->epoll;
    bool any = has_events(loop);
    for (int i = 0; i < epoll->n_events; i++)
        pass_on_one(loop, &epoll->events[i]);
    epoll->n_events = 0;
    if (!list_empty(&epoll->failed))
        pass_on_failed(loop);
    return any;
}

static void wake_word(struct loop *loop, const _Atomic uint32_t *word)
{
    uint64_t begin = spin_wake_begin(&loop->spin);
    (void)wake_futex_wake_peer(word);
    spin_wake_end(&loop->spin, begin);
}

const struct loop_backend loop_backend_epoll = {
    .deinit = deinit,
    .arm = arm,
    .unwatch = unwatch,
    .fetch = fetch,
    .sleep = sleep_in_epoll,
    .has_events = has_events,
    .pass_on = pass_on,
    .wake_word = wake_word,
};
