/* SPDX-License-Identifier: MIT */
#include "supervisor/trace/look.h"
#include "shared/base/clock.h"
#include "shared/protocol/trace.h"
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The limit of the process that traces. A tracer hides the death of its target, and the supervisor
 * waits for such a death for 900 ms. */
#define SAMPLE_USEC (700 * USEC_PER_MSEC)
/* How long threads may be uninterruptible in the kernel before they count as running. */
#define STOP_USEC (100 * USEC_PER_MSEC)

bool look_is_valid(void)
{
    return syscall(SYS_pidfd_send_signal, TRACE_FD_PROCESS, 0, NULL, 0) == 0;
}

int look_take(struct target *targets, size_t n, const struct hints *hints)
{
    const pid_t pid = fork();
    int r;

    if (pid < 0)
        return -errno;
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        r = sample_stop(targets, n, hints, STOP_USEC);
        if (r == 0)
            r = confine();
        if (r == 0)
            sample_copy(targets, n, hints);
        sample_let_go(targets, n);
        _exit(-r);
    }
    sample_await(pid, SAMPLE_USEC);
    for (size_t i = 0; i < n; i++)
        if (targets[i].sample->complete)
            return 0;
    return -ESRCH;
}
