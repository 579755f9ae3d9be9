/* SPDX-License-Identifier: MIT */
#include "spawn.h"
#include "../shared/cleanup.h"
#include "../shared/fault.h"
#include "spawn-child.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP UINT64_C(0x200000000) /* Linux 5.7 */
#endif
#ifndef P_PIDFD
#define P_PIDFD 3 /* Linux 5.4 */
#endif

/* Whether there is an instruction below that gives the child a stack of its own. */
#if defined(__x86_64__) || defined(__aarch64__)
#define SHARE_MEMORY true
#else
#define SHARE_MEMORY false
#endif

/* One at a time, since we wait for it; what it needs for the frames of plain system calls. */
static _Alignas(16) char child_stack[16384];

/*
 * Returns in the supervisor only. With shared memory the child begins on an empty stack, where
 * nothing of our frame can be found: so what it is to call stands in registers.
 */
__attribute__((noinline, no_sanitize("address", "thread", "undefined"))) static long
clone_child(struct clone_args *args, const struct spawn_child *child)
{
    long r;
#if defined(__x86_64__)
    register void (*enter)(const struct spawn_child *) __asm__("r8") = spawn_child_main;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%rdx, %%rdi\n\t"
                     "call *%%r8\n\t"
                     "ud2\n"
                     "1:"
                     : "=a"(r)
                     : "0"((long)SYS_clone3), "D"(args), "S"(sizeof(*args)), "d"(child), "r"(enter)
                     : "rcx", "r11", "memory", "cc");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = SYS_clone3;
    register long x0 __asm__("x0") = (long)args;
    register long x1 __asm__("x1") = (long)sizeof(*args);
    register long x2 __asm__("x2") = (long)child;
    register long x3 __asm__("x3") = (long)spawn_child_main;
    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "mov x0, x2\n\t"
                     "blr x3\n\t"
                     "brk #0\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x1), "r"(x2), "r"(x3), "r"(x8)
                     : "memory", "cc");
    r = x0;
#else
    r = syscall(SYS_clone3, args, sizeof(*args));
    if (r < 0)
        r = -errno;
    if (r == 0)
        spawn_child_main(child);
#endif
    return r;
}

/* How often a child that is stopped is looked after, and how often it may be before it is given
 * up. */
#define STOPPED_NSEC 10000000
#define STOPPED_MAX  10

static bool is_stopped(int pidfd)
{
    siginfo_t info = {0};
    int r = (int)syscall(SYS_waitid, P_PIDFD, pidfd, &info, WSTOPPED | WNOHANG | WNOWAIT | __WALL,
                         NULL);
    return r == 0 && info.si_pid != 0;
}

/*
 * What vfork would do, but for this: SIGSTOP cannot be blocked, and whoever is the user that the
 * child becomes may send it, again and again. That must not suspend us as well.
 */
static void await_exec(struct spawn_report *report, int pidfd)
{
    const struct timespec patience = {.tv_nsec = STOPPED_NSEC};
    unsigned n_stopped = 0;
    /* Partner: the kernel, when the child has left our memory. */
    while (atomic_load_explicit(&report->pending, memory_order_acquire) != 0) {
        if (syscall(SYS_futex, &report->pending, FUTEX_WAIT, 1, &patience, NULL, 0) == 0 ||
            !is_stopped(pidfd))
            continue;
        (void)syscall(SYS_pidfd_send_signal, pidfd, n_stopped < STOPPED_MAX ? SIGCONT : SIGKILL,
                      NULL, 0);
        n_stopped++;
    }
    if (n_stopped <= STOPPED_MAX)
        return;
    report->error = -EAGAIN;
    report->step = "stopped before exec";
}

/* Without clone3, which some container profiles answer with ENOSYS: copies the memory, joins later.
 */
static long clone_old(struct spawn_child *child, int *ret_pidfd)
{
    child->join_cgroup = child->options->cgroup_fd >= 0;
    child->report->pending = 0; /* not cleared in a copy; vfork waits */
    long r = syscall(SYS_clone, CLONE_PIDFD | CLONE_VFORK | SIGCHLD, NULL, ret_pidfd, NULL, NULL);
    if (r == 0)
        spawn_child_main(child);
    return r < 0 ? -errno : r;
}

static long clone_any(struct spawn_child *child, int *ret_pidfd)
{
    const struct spawn_options *options = child->options;
    struct clone_args args = {
        .flags = CLONE_PIDFD | CLONE_VFORK,
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .exit_signal = SIGCHLD,
    };
    if (SHARE_MEMORY) {
        args.flags = CLONE_PIDFD | CLONE_VM | CLONE_CHILD_CLEARTID;
        args.child_tid = (uint64_t)(uintptr_t)&child->report->pending;
        args.stack = (uint64_t)(uintptr_t)child_stack;
        args.stack_size = sizeof(child_stack);
        child->report->pending = 1;
    }
    if (options->cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (unsigned)options->cgroup_fd;
    }
    long r = fault_inject("clone");
    if (r == 0)
        r = clone_child(&args, child);
    if (r > 0)
        await_exec(child->report, *ret_pidfd);
    return r == -ENOSYS ? clone_old(child, ret_pidfd) : r;
}

/* Our own OOM score, open for reading and writing since before we gave up being dumpable; or -1. */
static int oom_score_fd = -1;

int spawn_prepare(void)
{
    if (oom_score_fd < 0)
        oom_score_fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    return oom_score_fd < 0 ? -errno : 0;
}

static int write_oom_score(int value)
{
    char text[12];
    size_t size = spawn_format_int(text, value);
    return pwrite(oom_score_fd, text, size, 0) < 0 ? -errno : 0;
}

/*
 * The files in /proc of a process that is not dumpable are root's, and the child shares our memory,
 * so without privileges it cannot set its own score. Then it inherits it: ours is what it is to
 * have while we wait for it anyway. Returns 1 if ours has to be given back, 0 if the child can do
 * it, or -errno.
 */
static int lend_oom_score(struct spawn_child *child, int *ret_own)
{
    char text[16];
    if (!child->options->set_oom_score_adjust)
        return 0;
    child->set_oom_score = faccessat(AT_FDCWD, "/proc/self/oom_score_adj", W_OK, AT_EACCESS) == 0;
    if (child->set_oom_score)
        return 0;
    ssize_t n = oom_score_fd < 0 ? -1 : pread(oom_score_fd, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return -EACCES;
    text[n] = '\0';
    *ret_own = (int)strtol(text, NULL, 10);
    int r = write_oom_score(child->options->oom_score_adjust);
    return r < 0 ? r : 1;
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
 * memory; one is enough, since we wait until the child has exec'ed or ended.
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
    int pidfd = -1, own_oom_score;
    int lent = lend_oom_score(&child, &own_oom_score);
    if (lent < 0) {
        *ret_step = "oom-score-adjust";
        return lent;
    }
    long pid = clone_shielded(&child, &pidfd);
    /* Cannot fail: what a process had, it may always have again. */
    if (lent > 0)
        (void)write_oom_score(own_oom_score);
    if (pid < 0)
        return (int)pid;

    /* The child wrote this before it ended, or never: then exec has released us. */
    r = child.report->error;
    if (r < 0) {
        *ret_step = child.report->step;
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
