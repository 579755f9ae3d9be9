/* SPDX-License-Identifier: MIT */
#include "spawn-child.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2) /* Linux 5.11 */
#endif

/*
 * Plain system calls only. The C library's setresuid() would drag all threads along, its
 * sigaction() and those of the sanitizers keep tables, and those are the supervisor's.
 *
 * The sanitizers' checks are off: their shadow of memory is the waiting supervisor's as well.
 */
#define CHILD __attribute__((no_sanitize("address", "thread", "undefined")))

/* As the kernel has it where sa_handler comes first, which is everywhere but on MIPS. */
struct kernel_sigaction {
    uintptr_t handler;
    unsigned long flags;
    uintptr_t restorer;
    uint64_t mask;
};

CHILD static _Noreturn void fail(const struct spawn_child *child, const char *step, int error)
{
    child->report->error = -error;
    child->report->step = step;
    for (;;)
        syscall(SYS_exit_group, 127);
}

CHILD static void reset_signals(void)
{
    for (int signo = 1; signo <= 64; signo++) {
        struct kernel_sigaction action = {0};
        if (syscall(SYS_rt_sigaction, signo, NULL, &action, sizeof(uint64_t)) < 0 ||
            action.handler == (uintptr_t)SIG_DFL)
            continue;
        action = (struct kernel_sigaction){.handler = (uintptr_t)SIG_DFL};
        syscall(SYS_rt_sigaction, signo, &action, NULL, sizeof(uint64_t));
    }
}

CHILD static int write_all(long fd, const char *text, size_t size)
{
    int error = syscall(SYS_write, fd, text, size) < 0 ? errno : 0;
    syscall(SYS_close, fd);
    return error;
}

CHILD static void join_cgroup(const struct spawn_child *child)
{
    long fd = syscall(SYS_openat, child->options->cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    int error = fd < 0 ? errno : write_all(fd, "0", 1);
    if (error != 0)
        fail(child, "cgroup", error);
}

CHILD static void adjust_oom_score(const struct spawn_child *child)
{
    char text[12];
    size_t size = spawn_format_int(text, child->options->oom_score_adjust);
    long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    int error = fd < 0 ? errno : write_all(fd, text, size);
    if (error != 0)
        fail(child, "oom-score-adjust", error);
}

CHILD static void set_up_scheduling(const struct spawn_child *child)
{
    const struct spawn_options *options = child->options;
    if (child->join_cgroup)
        join_cgroup(child);
    if (child->set_oom_score)
        adjust_oom_score(child);
    if (options->set_nice && syscall(SYS_setpriority, 0 /* a process */, 0, options->nice) < 0)
        fail(child, "nice", errno);
}

CHILD static int move_up(const struct spawn_child *child, int fd, int lowest)
{
    long moved = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest);
    if (moved < 0)
        fail(child, "descriptors", errno);
    return (int)moved;
}

/*
 * All sources are first copied to numbers above every target: after that no target can be the
 * source of a later one. What is not listed is closed by exec.
 */
CHILD static void set_up_descriptors(const struct spawn_child *child)
{
    int moved[SPAWN_FDS_MAX + 3];
    int lowest = 3;
    for (size_t i = 0; i < child->n_fds; i++) {
        if (child->fds[i].number >= lowest)
            lowest = child->fds[i].number + 1;
    }
    for (size_t i = 0; i < child->n_fds; i++) {
        if (child->fds[i].fd >= 0) {
            moved[i] = move_up(child, child->fds[i].fd, lowest);
            continue;
        }
        long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
        if (null < 0)
            fail(child, "open /dev/null", errno);
        moved[i] = move_up(child, (int)null, lowest);
    }
    if (syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
        fail(child, "close-range", errno);
    for (size_t i = 0; i < child->n_fds; i++) {
        if (syscall(SYS_dup3, moved[i], child->fds[i].number, 0) < 0)
            fail(child, "descriptors", errno);
    }
}

CHILD static void set_up_limits(const struct spawn_child *child)
{
    const struct spawn_options *options = child->options;
    for (size_t i = 0; i < options->n_rlimits; i++) {
        const struct spawn_rlimit *rlimit = &options->rlimits[i];
        uint64_t limit[2] = {rlimit->limit.rlim_cur, rlimit->limit.rlim_max};
        if (syscall(SYS_prlimit64, 0, rlimit->resource, limit, NULL) < 0)
            fail(child, "rlimit", errno);
    }
}

CHILD static void set_up_user(const struct spawn_child *child)
{
    const struct spawn_options *options = child->options;
    if (!options->set_user)
        return;
    /* A supervisor without privileges may name the user that it already is. */
    if (syscall(SYS_geteuid) != 0 && syscall(SYS_geteuid) == (long)options->uid &&
        syscall(SYS_getegid) == (long)options->gid)
        return;
    if (syscall(SYS_setgroups, options->n_groups, options->groups) < 0)
        fail(child, "setgroups", errno);
    if (syscall(SYS_setresgid, options->gid, options->gid, options->gid) < 0)
        fail(child, "setgid", errno);
    if (syscall(SYS_setresuid, options->uid, options->uid, options->uid) < 0)
        fail(child, "setuid", errno);
}

_Noreturn CHILD void spawn_child_main(const struct spawn_child *child)
{
    const struct spawn_options *options = child->options;
    reset_signals();
    if (syscall(SYS_setpgid, 0, 0) < 0)
        fail(child, "setpgid", errno);
    set_up_scheduling(child);
    set_up_descriptors(child);
    set_up_limits(child);
    set_up_user(child);
    /* After the change of user, which clears it. */
    if (syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        fail(child, "parent-death signal", errno);
    if (syscall(SYS_getppid) != child->parent)
        fail(child, "parent-death signal", ESRCH); /* it died before it could tell us */
    const char *directory = options->working_directory ? options->working_directory : "/";
    if (syscall(SYS_chdir, directory) < 0)
        fail(child, "chdir", errno);
    uint64_t no_signals = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, sizeof(no_signals));
    syscall(SYS_execve, options->argv[0], options->argv, options->environment);
    fail(child, "exec", errno);
}

CHILD size_t spawn_format_int(char *buffer, int value)
{
    char digits[12];
    size_t n = 0, size = 0;
    unsigned rest = value < 0 ? 0u - (unsigned)value : (unsigned)value;
    if (value < 0)
        buffer[size++] = '-';
    do {
        digits[n++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    while (n > 0)
        buffer[size++] = digits[--n];
    return size;
}
