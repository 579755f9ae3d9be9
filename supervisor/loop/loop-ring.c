/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/loop-ring.h"
#include "shared/base/cleanup.h"
#include "shared/base/uapi.h"
#include "supervisor/loop/loop.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static void prep_futex(struct io_uring_sqe *sqe, int op, const void *word, __u64 value)
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
    prep_futex(sqe, TROUPE_IORING_OP_FUTEX_WAIT, word, expected);
}

void loop_ring_prep_futex_wake(struct io_uring_sqe *sqe, const void *word, unsigned n_waiters)
{
    prep_futex(sqe, TROUPE_IORING_OP_FUTEX_WAKE, word, n_waiters);
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

/* Best first. DEFER_TASKRUN saves interrupts: completions are processed only on request. With
 * TASKRUN_FLAG a read of shared memory shows whether a request is worth a system call. */
static int setup(struct io_uring *uring, unsigned entries)
{
    static const unsigned flags[] = {
        IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SINGLE_ISSUER |
            IORING_SETUP_DEFER_TASKRUN,                                                  /* 6.1 */
        IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_COOP_TASKRUN, /* 5.19 */
        0,
    };
    int r = -EINVAL;
    for (size_t i = 0; i < ELEMENTS(flags) && r == -EINVAL; i++) {
        struct io_uring_params params = {
            .flags = flags[i] | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
            .cq_entries = entries * 4,
        };
        r = io_uring_queue_init_params(entries, uring, &params);
    }
    return r;
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
        if (ring->uring.features & IORING_FEAT_CQE_SKIP)
            ring->quiet_success = IOSQE_CQE_SKIP_SUCCESS;
        r = try_out(ring, !force_eventfd);
        if (r < 0)
            io_uring_queue_exit(&ring->uring);
    }
    if (r == -EMFILE || r == -ENFILE || r == 0)
        return r;
    *ret_reason = reason_for(-r);
    return LOOP_E_UNAVAILABLE;
}

void loop_ring_deinit(struct loop_ring *ring)
{
    io_uring_queue_exit(&ring->uring);
}
