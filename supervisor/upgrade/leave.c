/* SPDX-License-Identifier: MIT */
#include "supervisor/upgrade/leave.h"

#include "shared/base/clock.h"
#include "shared/ring/wake.h"
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* If the other process has not run by then, it was killed, or the end takes longer. */
#define LIMIT (5 * USEC_PER_SEC)

static struct {
    pid_t leaver;
    _Atomic uint32_t ready;
    _Alignas(16) char stack[16384];
} heir;

/* The other process. Its descriptors are the leaver's until it has let go of them. */
static int hold_memory(void *unused)
{
    (void)unused;
    (void)prctl(PR_SET_NAME, "trouped-memory");
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (syscall(SYS_close_range, 0, ~0U, CLOSE_RANGE_UNSHARE) < 0 || getppid() != heir.leaver)
        _exit(0);
    atomic_store(&heir.ready, 1);
    (void)wake_futex_wake(&heir.ready);
    for (;;)
        (void)pause();
}

void leave_at_once(int status)
{
    heir.leaver = getpid();
    if (clone(hold_memory, heir.stack + sizeof(heir.stack), CLONE_VM | CLONE_FILES, NULL) > 0)
        (void)wake_futex_wait(&heir.ready, 0, LIMIT);
    _exit(status);
}
