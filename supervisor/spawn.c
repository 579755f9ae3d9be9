/* SPDX-License-Identifier: MIT */
#include "spawn.h"
#include "../shared/cleanup.h"
#include "../shared/clock.h"
#include "../shared/fault.h"
#include "spawn-child.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP UINT64_C(0x200000000) /* Linux 5.7 */
#endif
#ifndef P_PIDFD
#define P_PIDFD 3 /* Linux 5.4 */
#endif

#define OOM_SCORE_PATIENCE (20 * USEC_PER_MSEC)

/* Whether the clone below is made by an instruction in our own frame, not in one that returns. */
#if defined(__x86_64__) || defined(__aarch64__)
#define SHARE_MEMORY ((uint64_t)CLONE_VM)
#else
#define SHARE_MEMORY ((uint64_t)0)
#endif

/*
 * Returns in the supervisor only; the child shares its stack (as with vfork) and must not come back
 * through a frame that the supervisor still needs. So the system call is made right here, and all
 * that the child does in this frame is to call a function that never returns.
 */
__attribute__((noinline, no_sanitize("address", "thread", "undefined"))) static long
clone_child(struct clone_args *args, const struct spawn_child *child)
{
    long r;
#if defined(__x86_64__)
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "0"((long)SYS_clone3), "D"(args), "S"(sizeof(*args))
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = SYS_clone3;
    register long x0 __asm__("x0") = (long)args;
    register long x1 __asm__("x1") = (long)sizeof(*args);
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x1), "r"(x8) : "memory", "cc");
    r = x0;
#else
    r = syscall(SYS_clone3, args, sizeof(*args));
    if (r < 0)
        r = -errno;
#endif
    if (r == 0)
        spawn_child_main(child);
    return r;
}

/* Without clone3, which some container profiles answer with ENOSYS: copies the memory, joins later.
 */
static long clone_old(struct spawn_child *child, int *ret_pidfd)
{
    child->join_cgroup = child->options->cgroup_fd >= 0;
    long r = syscall(SYS_clone, CLONE_PIDFD | CLONE_VFORK | SIGCHLD, NULL, ret_pidfd, NULL, NULL);
    if (r == 0)
        spawn_child_main(child);
    return r < 0 ? -errno : r;
}

static long clone_any(struct spawn_child *child, int *ret_pidfd)
{
    const struct spawn_options *options = child->options;
    struct clone_args args = {
        .flags = CLONE_PIDFD | CLONE_VFORK | SHARE_MEMORY,
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .exit_signal = SIGCHLD,
    };
    if (options->cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (unsigned)options->cgroup_fd;
    }
    long r = fault_inject("clone");
    if (r == 0)
        r = clone_child(&args, child);
    return r == -ENOSYS ? clone_old(child, ret_pidfd) : r;
}

/*
 * All signals are blocked meanwhile: until exec a handler would run in the child on the
 * supervisor's memory. By the system call, since the C library spares two signals that it uses
 * itself.
 */
static long clone_shielded(struct spawn_child *child, int *ret_pidfd)
{
    uint64_t all = UINT64_MAX, saved;
    if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &saved, sizeof(all)) < 0)
        return -errno;
    /* A change of user in the child falls back on the memory it shares with us: see below. */
    int dumpable = child->options->set_user ? prctl(PR_GET_DUMPABLE) : -1;
    long r = clone_any(child, ret_pidfd);
    /* The kernel resets this flag to fs.suid_dumpable, which might be what we are not to be:
     * dumpable. */
    if ((dumpable == 0 || dumpable == 1) && prctl(PR_GET_DUMPABLE) != dumpable)
        (void)prctl(PR_SET_DUMPABLE, dumpable);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved, NULL, sizeof(saved));
    return r;
}

/* 0, 1 and 2 first, so that the child has them even if nobody thought of them. */
static int list_descriptors(struct spawn_child *child)
{
    const struct spawn_options *options = child->options;
    if (options->n_fds > SPAWN_FDS_MAX)
        return -E2BIG;
    child->n_fds = 3;
    for (int i = 0; i < 3; i++)
        child->fds[i] = (struct spawn_fd){.fd = -1, .number = i};
    for (size_t i = 0; i < options->n_fds; i++) {
        struct spawn_fd fd = options->fds[i];
        if (fd.fd < 0 || fd.number < 0)
            return -EBADF;
        child->fds[fd.number < 3 ? (size_t)fd.number : child->n_fds++] = fd;
    }
    return 0;
}

static int write_oom_score(pid_t pid, int adjust)
{
    char path[64], text[12];
    (void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
    size_t size = spawn_format_int(text, adjust);
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, size) == (ssize_t)size ? 0 : -errno;
}

static bool has_ended(int pidfd)
{
    siginfo_t info = {0};
    return syscall(SYS_waitid, P_PIDFD, pidfd, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, NULL) ==
               0 &&
           info.si_pid != 0;
}

/*
 * Exec releases us when the old memory is given up, a moment before the new one counts as dumpable,
 * and the files in /proc as the worker's: until then, and once it has ended, they are root's. There
 * is nothing to wait for, so this looks again, for a bounded time.
 */
static int write_oom_score_late(pid_t pid, int pidfd, int adjust)
{
    usec_t deadline = usec_add(clock_now(), OOM_SCORE_PATIENCE);
    int r;
    while ((r = write_oom_score(pid, adjust)) == -EACCES && clock_now() < deadline) {
        if (has_ended(pidfd))
            return 0;
        (void)sched_yield();
    }
    return r;
}

static void end(int pidfd)
{
    siginfo_t info;
    (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    while (syscall(SYS_waitid, P_PIDFD, pidfd, &info, WEXITED | __WALL, NULL) < 0 && errno == EINTR)
        ;
    close_fd(pidfd);
}

/*
 * For what the child reports. Mapped once and shared even with a child that got a copy of our
 * memory; one is enough, since we are suspended until the child has exec'ed or ended.
 */
static struct spawn_report *report_page(void)
{
    static struct spawn_report *page;
    if (!page) {
        void *map =
            mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED)
            return NULL;
        page = map;
    }
    *page = (struct spawn_report){0};
    return page;
}

int spawn(const struct spawn_options *options, struct spawn_result *ret, const char **ret_step)
{
    struct spawn_child child = {
        .options = options,
        .report = report_page(),
        .parent = getpid(),
    };
    *ret_step = "clone";
    if (!child.report)
        return -ENOMEM;
    int r = list_descriptors(&child);
    if (r < 0) {
        *ret_step = "descriptors";
        return r;
    }
    int pidfd = -1;
    long pid = clone_shielded(&child, &pidfd);
    if (pid < 0)
        return (int)pid;

    /* The child wrote this before it ended, or never: then exec has released us. */
    r = child.report->error;
    if (r < 0) {
        *ret_step = child.report->step;
    } else if (child.report->oom_score_refused) {
        *ret_step = "oom-score-adjust";
        r = write_oom_score_late((pid_t)pid, pidfd, options->oom_score_adjust);
    }
    if (r < 0) {
        end(pidfd);
        return r;
    }
    *ret = (struct spawn_result){.pid = (pid_t)pid, .pidfd = pidfd};
    return 0;
}

int spawn_reap(int pidfd, struct spawn_exit *ret)
{
    siginfo_t info = {0};
    struct rusage usage = {0};
    /* The C library's waitid() has no room for the fifth argument. */
    if (syscall(SYS_waitid, P_PIDFD, pidfd, &info, WEXITED | WNOHANG | __WALL, &usage) < 0)
        return -errno;
    if (info.si_pid == 0)
        return -EAGAIN;
    *ret = (struct spawn_exit){
        .signalled = info.si_code != CLD_EXITED,
        .code = info.si_status,
        .core_dumped = info.si_code == CLD_DUMPED,
        .usage = usage,
    };
    return 0;
}
