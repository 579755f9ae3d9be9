/* SPDX-License-Identifier: MIT */
#include "supervisor/upgrade/leave.h"

#include "shared/base/clock.h"
#include "shared/ring/wake.h"
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* If the other process has not run by then, it was killed, or the end takes longer: some tens of
 * milliseconds. */
#define LIMIT (USEC_PER_SEC / 2)

static struct {
    pid_t leaver;
    _Atomic uint32_t ready;
    _Alignas(16) char stack[16384];
} heir;

/* The other process. Its descriptors are the leaver's until it has let go of them. It waits for the
 * end of all threads of the leaver: the last one takes down the memory if nobody else has it. */
static int hold_memory(void *unused)
{
    struct pollfd end = {.fd = -1, .events = POLLIN};
    bool holds;

    (void)unused;
    (void)prctl(PR_SET_NAME, "trouped-memory");
    if (syscall(SYS_close_range, 0, ~0U, CLOSE_RANGE_UNSHARE) == 0)
        end.fd = (int)syscall(SYS_pidfd_open, heir.leaver, 0);
    holds = end.fd >= 0 && getppid() == heir.leaver;
    atomic_store(&heir.ready, 1);
    (void)wake_futex_wake(&heir.ready);
    while (holds && poll(&end, 1, -1) < 0)
        ;
    _exit(0);
}

void leave_at_once(int status)
{
    heir.leaver = getpid();
    if (clone(hold_memory, heir.stack + sizeof(heir.stack), CLONE_VM | CLONE_FILES, NULL) > 0)
        (void)wake_futex_wait(&heir.ready, 0, LIMIT);
    _exit(status);
}
