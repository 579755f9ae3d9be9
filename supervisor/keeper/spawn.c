/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/spawn.h"
#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "supervisor/keeper/spawn-child.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP UINT64_C(0x200000000) /* Linux 5.7 */
#endif

/* Returns /dev/null, or -errno. It stays open: opening it in the child takes a fifth of the time
 * from clone to exec. */
static int null_device(void)
{
    static int fd = -1;
    if (fd < 0)
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* For container profiles that answer clone3 with ENOSYS. The child then joins its cgroup itself. */
static long clone_old(struct spawn_child *child, unsigned long flags, int *ret_pidfd)
{
    child->join_cgroup = child->options->cgroup_fd >= 0;
    long r = syscall(SYS_clone, flags | SIGCHLD, NULL, ret_pidfd, NULL, NULL);
    return r < 0 ? -errno : r;
}

/*
 * The child gets a copy of the memory, as with fork(). CLONE_VM would be faster for a large
 * process, but the keeper is small. Sharing memory would also share the child's OOM score, let an
 * OOM kill in the new cgroup hit the keeper, and block it until the exec.
 */
static long clone_with(struct spawn_child *child, unsigned long flags, int *ret_pidfd)
{
    struct clone_args args = {
        .flags = flags,
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .exit_signal = SIGCHLD,
    };
    if (child->options->cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (unsigned)child->options->cgroup_fd;
    }
    int r = fault_inject("clone");
    if (r < 0)
        return r;
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0)
        pid = errno == ENOSYS ? clone_old(child, flags, ret_pidfd) : -errno;
    return pid;
}

/* Without the namespace that it needs, the child is made only to report that. */
static long clone_child(struct spawn_child *child, int *ret_pidfd)
{
    if (!child->options->private_pids)
        return clone_with(child, CLONE_PIDFD, ret_pidfd);
    long pid = clone_with(child, CLONE_PIDFD | CLONE_NEWPID, ret_pidfd);
    if (pid >= 0)
        return pid;
    child->pids_error = (int)-pid;
    return clone_with(child, CLONE_PIDFD, ret_pidfd);
}

int spawn(const struct spawn_options *options, struct spawn_result *ret)
{
    _cleanup_close_ int parent_fd =
        options->private_pids ? (int)syscall(SYS_pidfd_open, getpid(), 0) : -1;
    struct spawn_child child = {.options = options, .parent = getpid(), .parent_fd = parent_fd};
    int pidfd = -1;
    if (options->private_pids && parent_fd < 0)
        return -errno;
    child.null_fd = null_device();
    long pid = clone_child(&child, &pidfd);
    if (pid == 0)
        spawn_child_main(&child);
    if (pid < 0)
        return (int)pid;
    *ret = (struct spawn_result){.pid = (pid_t)pid, .pidfd = pidfd};
    return 0;
}

/* Uses system calls because the C library hides two signals, which a parent may also have ignored.
 * The kernel's struct begins with the handler on all architectures but MIPS. */
void spawn_reset_ignored_signals(void)
{
    for (int signo = 1; signo <= 64; signo++) {
        uintptr_t action[8] = {0};
        if (syscall(SYS_rt_sigaction, signo, NULL, action, sizeof(uint64_t)) < 0 ||
            action[0] != (uintptr_t)SIG_IGN)
            continue;
        action[0] = (uintptr_t)SIG_DFL;
        syscall(SYS_rt_sigaction, signo, action, NULL, sizeof(uint64_t));
    }
}

/* Returns the pid, 0 if no such child has ended, or -errno. */
static pid_t wait_for(idtype_t type, pid_t id, int options, struct spawn_exit *ret)
{
    siginfo_t info = {0};
    struct rusage usage = {0};
    /* The C library's waitid() does not return the usage. */
    if (syscall(SYS_waitid, type, id, &info, options | WEXITED | WNOHANG | __WALL, &usage) < 0)
        return -errno;
    *ret = (struct spawn_exit){
        .signalled = info.si_code != CLD_EXITED,
        .code = info.si_status,
        .core_dumped = info.si_code == CLD_DUMPED,
        .usage = {.user = usage.ru_utime, .system = usage.ru_stime, .max_rss = usage.ru_maxrss},
    };
    return info.si_pid;
}

pid_t spawn_find_ended(struct spawn_exit *ret)
{
    return wait_for(P_ALL, 0, WNOWAIT, ret);
}

bool spawn_is_child(pid_t pid)
{
    struct spawn_exit how;
    return pid > 0 && wait_for(P_PID, pid, WNOWAIT, &how) >= 0;
}

int spawn_reap(pid_t pid, struct spawn_exit *ret)
{
    pid_t r = wait_for(P_PID, pid, 0, ret);
    if (r == 0)
        return -EAGAIN;
    return r < 0 ? r : 0;
}
