/* SPDX-License-Identifier: MIT */

/* The back end that waits in an io_uring: submissions, completions, sleep. */

#include "supervisor/loop/loop-slot.h"
#include <errno.h>
#include <limits.h>

static void deinit(struct loop *loop)
{
    loop_ring_deinit(&loop->ring);
}

/* NULL if the queue is full even after a submission: the caller tries again in the next turn. */
static struct io_uring_sqe *get_sqe(struct loop *loop)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&loop->ring.uring);
    if (!sqe) {
        (void)io_uring_submit(&loop->ring.uring);
        sqe = io_uring_get_sqe(&loop->ring.uring);
    }
    return sqe;
}

static void unwatch(struct loop *loop, struct watch_slot *slot)
{
    if (slot->state == WATCH_ARMED || slot->state == WATCH_UPDATE)
        loop_slot_move(slot, WATCH_CANCEL, &loop->cancels);
    else
        loop_slot_give_back(loop, slot);
}

static void prep(struct watch_slot *slot, struct io_uring_sqe *sqe)
{
    switch (slot->kind) {
    case WATCH_FD:
        io_uring_prep_poll_add(sqe, slot->fd, slot->events);
        slot->armed_events = slot->events;
        break;
    case WATCH_WORD:
        loop_ring_prep_futex_wait(sqe, (const void *)slot->word, slot->events);
        break;
    case WATCH_COUNTER:
        io_uring_prep_read(sqe, slot->fd, &slot->counter, sizeof(slot->counter), 0);
        break;
    }
    sqe->user_data = loop_slot_id(slot);
}

/* Fails if the poll has already completed; then its completion arms it for the new events. */
static void update(struct loop *loop, struct watch_slot *slot, struct io_uring_sqe *sqe)
{
    io_uring_prep_poll_update(sqe, loop_slot_id(slot), 0, slot->events, IORING_POLL_UPDATE_EVENTS);
    sqe->flags |= loop->ring.quiet_success;
    sqe->user_data = 0;
    slot->armed_events = slot->events;
}

static bool arm(struct loop *loop)
{
    struct io_uring_sqe *sqe;
    while (!list_empty(&loop->cancels)) {
        struct watch_slot *slot = loop_slot_first(&loop->cancels);
        if (!(sqe = get_sqe(loop)))
            return false;
        io_uring_prep_cancel64(sqe, loop_slot_id(slot), 0);
        sqe->flags |= loop->ring.quiet_success;
        sqe->user_data = 0;
        loop_slot_give_back(loop, slot);
    }
    while (!list_empty(&loop->updates)) {
        struct watch_slot *slot = loop_slot_first(&loop->updates);
        if (!(sqe = get_sqe(loop)))
            return false;
        update(loop, slot, sqe);
        loop_slot_move(slot, WATCH_ARMED, NULL);
    }
    while (!list_empty(&loop->pending)) {
        struct watch_slot *slot = loop_slot_first(&loop->pending);
        if (!(sqe = get_sqe(loop)))
            return false;
        prep(slot, sqe);
        loop_slot_move(slot, WATCH_ARMED, NULL);
    }
    return true;
}

/* Completions that the kernel writes only on request are announced by a flag in shared memory. */
static bool may_fetch(const struct loop *loop)
{
    const unsigned flags = IO_URING_READ_ONCE(*loop->ring.uring.sq.kflags);

    return (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

/* Makes no system call unless there is something to submit or to reap. */
static int fetch(struct loop *loop, bool all)
{
    struct io_uring *uring = &loop->ring.uring;
    (void)all;
    if (io_uring_sq_ready(uring) == 0 && !may_fetch(loop))
        return 0;
    return io_uring_submit_and_get_events(uring);
}

static int sleep_in_ring(struct loop *loop, usec_t timeout)
{
    struct io_uring *uring = &loop->ring.uring;
    if (timeout == USEC_INFINITY)
        return io_uring_submit_and_wait(uring, 1);
    struct io_uring_cqe *cqe;
    struct __kernel_timespec ts = {.tv_sec = (long long)(timeout / USEC_PER_SEC),
                                   .tv_nsec = (long long)(timeout % USEC_PER_SEC * 1000)};
    return io_uring_submit_and_wait_timeout(uring, &cqe, 1, &ts, NULL);
}

static bool has_events(const struct loop *loop)
{
    return io_uring_cq_ready(&loop->ring.uring) > 0;
}

static void complete(struct loop *loop, uint64_t id, int result)
{
    struct watch_slot *slot = loop_slot_find(loop, id);
    if (!slot)
        return;
    if (slot->state == WATCH_CANCEL)
        loop_slot_give_back(loop, slot);
    else
        loop_slot_complete(loop, slot, result);
}

static bool pass_on(struct loop *loop)
{
    unsigned n = io_uring_cq_ready(&loop->ring.uring);
    for (unsigned i = 0; i < n; i++) {
        struct io_uring_cqe *cqe;
        if (io_uring_peek_cqe(&loop->ring.uring, &cqe) != 0)
            break;
        uint64_t id = cqe->user_data;
        int result = cqe->res;
        io_uring_cqe_seen(&loop->ring.uring, cqe);
        complete(loop, id, result);
    }
    return n > 0;
}

static void wake_word(struct loop *loop, const _Atomic uint32_t *word)
{
    /* Only a separate submission can be measured. */
    uint64_t begin = spin_wake_begin(&loop->spin);
    struct io_uring_sqe *sqe = loop->ring.futex && begin == 0 ? get_sqe(loop) : NULL;
    if (!sqe) {
        (void)wake_futex_wake_peer(word);
        spin_wake_end(&loop->spin, begin);
        return;
    }
    loop_ring_prep_futex_wake(sqe, (const void *)word, WAKE_PEER_MAX);
    sqe->flags |= loop->ring.quiet_success;
}

const struct loop_backend loop_backend_ring = {
    .deinit = deinit,
    .arm = arm,
    .unwatch = unwatch,
    .fetch = fetch,
    .sleep = sleep_in_ring,
    .may_fetch = may_fetch,
    .has_events = has_events,
    .pass_on = pass_on,
    .wake_word = wake_word,
};
