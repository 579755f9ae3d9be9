/* SPDX-License-Identifier: MIT */
/* The back end that waits in an io_uring: set-up, submissions, completions, sleep. */

#include "shared/base/cleanup.h"
#include "shared/base/uapi.h"
#include "supervisor/loop/loop-slot.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

static void prep_operation(struct io_uring_sqe *sqe, int op, const void *word, __u64 value)
{
    *sqe = (struct io_uring_sqe){
        .opcode = (__u8)op,
        .fd = TROUPE_FUTEX2_SIZE_U32, /* and not private: the word is shared between processes */
        .addr = (__u64)(uintptr_t)word,
        .addr2 = value,
    };
    sqe->addr3 = TROUPE_FUTEX_MATCH_ANY;
}

void loop_ring_prep_futex_wait(struct io_uring_sqe *sqe, const void *word, unsigned expected)
{
    prep_operation(sqe, TROUPE_IORING_OP_FUTEX_WAIT, word, expected);
}

void loop_ring_prep_futex_wake(struct io_uring_sqe *sqe, const void *word, unsigned n_waiters)
{
    prep_operation(sqe, TROUPE_IORING_OP_FUTEX_WAKE, word, n_waiters);
}

/* Returns the value of the sysctl: '0' … '2', or '0' before Linux 6.6, which does not have it. */
static char read_disabled(void)
{
    char value = '0';
    _cleanup_close_ int fd = open("/proc/sys/kernel/io_uring_disabled", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &value, 1) != 1)
        return '0';
    return value;
}

static const char *reason_for(int error)
{
    switch (error) {
    case ENOSYS:
    case EINVAL:
        return "this kernel has no io_uring (CONFIG_IO_URING, Linux 6.1 or newer is needed), or a "
               "seccomp filter hides it";
    case ENOMEM:
        return "not enough memory for an io_uring: raise RLIMIT_MEMLOCK (ulimit -l, LimitMEMLOCK=) "
               "or the memory limit of the cgroup";
    default:
        break;
    }
    switch (read_disabled()) {
    case '2':
        return "io_uring is switched off on this machine: set the sysctl "
               "kernel.io_uring_disabled=0";
    case '1':
        return "io_uring is reserved for a group of users: set the sysctl "
               "kernel.io_uring_disabled=0, or join the group kernel.io_uring_group";
    default:
        return "io_uring is forbidden here, by a seccomp filter or a security module: allow the "
               "system calls io_uring_setup, io_uring_enter and io_uring_register "
               "(SystemCallFilter=, the container's seccomp profile)";
    }
}

/* DEFER_TASKRUN saves interrupts: completions are processed only on request. With TASKRUN_FLAG a
 * read of shared memory shows whether a request is worth a system call. */
static int setup(struct io_uring *uring, unsigned entries)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SINGLE_ISSUER |
                 IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
        .cq_entries = entries * 4,
    };
    return io_uring_queue_init_params(entries, uring, &params);
}

/* Submits a wait that must fail with -EAGAIN and a wake without waiters. IORING_REGISTER_PROBE is
 * not enough: a filter may refuse operations that the kernel has. */
static int try_out(struct loop_ring *ring, bool futex)
{
    static const _Atomic uint32_t word = 1;
    enum {
        NOP = 1,
        WAIT,
        WAKE
    };
    unsigned n = futex ? 3 : 1;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
    io_uring_prep_nop(sqe);
    sqe->user_data = NOP;
    if (futex) {
        sqe = io_uring_get_sqe(&ring->uring);
        loop_ring_prep_futex_wait(sqe, (const void *)&word, 0);
        sqe->user_data = WAIT;
        sqe = io_uring_get_sqe(&ring->uring);
        loop_ring_prep_futex_wake(sqe, (const void *)&word, 1);
        sqe->user_data = WAKE;
    }
    bool wait_works = false, wake_works = false;
    while (n > 0) {
        struct io_uring_cqe *cqe;
        int r = io_uring_submit_and_wait(&ring->uring, 1);
        if (r < 0 && r != -EINTR)
            return r;
        for (; n > 0 && io_uring_peek_cqe(&ring->uring, &cqe) == 0; n--) {
            if (cqe->user_data == WAIT)
                wait_works = cqe->res == -EAGAIN;
            else if (cqe->user_data == WAKE)
                wake_works = cqe->res == 0;
            io_uring_cqe_seen(&ring->uring, cqe);
        }
    }
    ring->futex = wait_works && wake_works;
    return 0;
}

int loop_ring_init(struct loop_ring *ring, unsigned entries, bool force_eventfd,
                   const char **ret_reason)
{
    *ring = (struct loop_ring){0};
    int r = setup(&ring->uring, entries);
    if (r == 0) {
        r = try_out(ring, !force_eventfd);
        if (r < 0)
            io_uring_queue_exit(&ring->uring);
    }
    if (r == -EMFILE || r == -ENFILE || r == 0)
        return r;
    *ret_reason = reason_for(-r);
    return LOOP_E_UNAVAILABLE;
}

/* ---- turns ---- */

static void deinit(struct loop *loop)
{
    io_uring_queue_exit(&loop->ring.uring);
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
static void update(struct watch_slot *slot, struct io_uring_sqe *sqe)
{
    io_uring_prep_poll_update(sqe, loop_slot_id(slot), 0, slot->events, IORING_POLL_UPDATE_EVENTS);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
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
        sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
        sqe->user_data = 0;
        loop_slot_give_back(loop, slot);
    }
    while (!list_empty(&loop->updates)) {
        struct watch_slot *slot = loop_slot_first(&loop->updates);
        if (!(sqe = get_sqe(loop)))
            return false;
        update(slot, sqe);
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
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
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
