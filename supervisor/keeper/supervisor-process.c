/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/supervisor-process.h"
#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "supervisor/keeper/spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct rlimit descriptors; /* as inherited */

/* Holdings take many descriptors. The supervisor, and through it the workers, start with the
 * inherited limit. */
static size_t raise_descriptor_limit(void)
{
    if (getrlimit(RLIMIT_NOFILE, &descriptors) < 0)
        return 0;
    const struct rlimit limit = {descriptors.rlim_max, descriptors.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? descriptors.rlim_cur : limit.rlim_cur;
}

size_t supervisor_process_init(sigset_t *ret)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGXCPU};
    spawn_reset_ignored_signals(); /* with SIGCHLD ignored, the kernel would reap */
    (void)sigfillset(ret);
    for (size_t i = 0; i < ELEMENTS(own); i++)
        (void)sigdelset(ret, own[i]);
    (void)sigprocmask(SIG_SETMASK, ret, NULL);
    return raise_descriptor_limit();
}

int supervisor_process_cannot_start(const char *call)
{
    const int error = errno;
    const bool forbidden = error == EPERM || error == ENOSYS;
    log_error("cannot start the supervisor: %s: %s%s", call, strerror(error),
              forbidden ? "; allowed: a seccomp filter (SystemCallFilter=) that permits it" : "");
    return -error;
}

int program_open(const char *path)
{
    const int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    log_error("%s: %s", path, strerror(errno));
    return -errno;
}

pid_t supervisor_process_start(const struct program *program, int notify_fd, int *ret_channel)
{
    const pid_t keeper = getpid();
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return supervisor_process_cannot_start("socketpair");
    const pid_t pid = fork();
    if (pid == 0) {
        const struct keeper_ends ends = {.channel = fds[1], .notify_fd = notify_fd};
        close_fd(fds[0]);
        supervisor_child_run(program, &ends, keeper, &descriptors);
    }
    close_fd(fds[1]);
    if (pid < 0) {
        close_fd(fds[0]);
        return supervisor_process_cannot_start("fork");
    }
    *ret_channel = fds[0];
    return pid;
}

/* ---- crashes ---- */

/* A supervisor that crashes in safe mode too is started again after growing pauses. */
#define DELAY_FIRST USEC_PER_SEC
#define DELAY_MAX   (30 * USEC_PER_SEC)

usec_t crashes_add(struct crashes *crashes, usec_t now)
{
    usec_t *oldest = &crashes->at[crashes->n++ % CRASHES_MAX];
    const usec_t earlier = crashes->at[crashes->n % CRASHES_MAX];
    *oldest = now;
    if (crashes->safe_mode) {
        crashes->delay = crashes->delay == 0 ? DELAY_FIRST : 2 * crashes->delay;
        if (crashes->delay > DELAY_MAX)
            crashes->delay = DELAY_MAX;
    }
    if (earlier != 0 && usec_sub(now, earlier) <= CRASHES_WITHIN && fault_inject("safe-mode") == 0)
        crashes->safe_mode = true;
    return usec_add(now, crashes->delay);
}

void crashes_forgive(struct crashes *crashes)
{
    memset(crashes->at, 0, sizeof(crashes->at));
    crashes->safe_mode = false;
    crashes->delay = 0;
}
