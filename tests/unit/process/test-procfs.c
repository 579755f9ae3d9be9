/* SPDX-License-Identifier: MIT */
#include "supervisor/process/procfs.h"
#include "tests/unit/suite.h"
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ptrace.h>

TEST(a_process_that_lives_is_told_with_its_kin)
{
    struct procfs_stat stat;

    ck_assert_int_eq(procfs_stat(getpid(), &stat), 0);
    ck_assert_int_eq(stat.parent, getppid());
    ck_assert_int_eq(stat.group, getpgrp());
    ck_assert_int_eq(stat.session, getsid(0));
    ck_assert_uint_gt(stat.started, 0);
    ck_assert(!procfs_is_traced(getpid()));
    ck_assert(!stat.exiting);
}

TEST(a_zombie_is_on_its_way_out_and_then_nothing)
{
    struct procfs_stat stat;
    siginfo_t info;
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert_int_eq(procfs_stat(pid, &stat), 0);
    ck_assert(stat.exiting);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(procfs_stat(pid, &stat), -ESRCH);
}

TEST(what_a_signal_does_is_told_by_any_thread_of_the_process)
{
    struct procfs_signals signals;
    sigset_t set;

    ck_assert_int_eq(procfs_signals(getpid(), SIGSYS, &signals), 0);
    ck_assert_int_eq(signals.process, getpid());
    ck_assert_int_eq(signals.inner, getpid());
    ck_assert(signals.ends);
    ck_assert_ptr_ne(signal(SIGSYS, SIG_IGN), SIG_ERR);
    ck_assert_int_eq(procfs_signals(getpid(), SIGSYS, &signals), 0);
    ck_assert(!signals.ends);
    ck_assert_ptr_ne(signal(SIGSYS, SIG_DFL), SIG_ERR);
    ck_assert_int_eq(sigemptyset(&set), 0);
    ck_assert_int_eq(sigaddset(&set, SIGSYS), 0);
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    ck_assert_int_eq(procfs_signals(getpid(), SIGSYS, &signals), 0);
    ck_assert(!signals.ends);
    ck_assert_int_eq(procfs_signals(getpid(), SIGABRT, &signals), 0);
    ck_assert(signals.ends);
    ck_assert_int_eq(procfs_signals(INT_MAX, SIGSYS, &signals), -ESRCH);
}

static void *stay(void *barrier)
{
    (void)pthread_barrier_wait(barrier);
    (void)pthread_barrier_wait(barrier);
    return NULL;
}

TEST(a_signal_for_a_process_with_several_threads_may_not_end_it)
{
    struct procfs_signals signals;
    pthread_barrier_t barrier;
    pthread_t thread;

    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, 2), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, stay, &barrier), 0);
    (void)pthread_barrier_wait(&barrier);
    ck_assert_int_eq(procfs_signals(getpid(), SIGSYS, &signals), 0);
    ck_assert_int_eq(signals.process, getpid());
    ck_assert(!signals.ends);
    (void)pthread_barrier_wait(&barrier);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(pthread_barrier_destroy(&barrier), 0);
}

TEST(a_signal_for_a_traced_process_may_not_end_it)
{
    struct procfs_signals signals;
    const pid_t pid = fork();
    int status;

    if (pid == 0) {
        (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void)raise(SIGSTOP);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(WIFSTOPPED(status));
    ck_assert_int_eq(procfs_signals(pid, SIGSYS, &signals), 0);
    ck_assert_int_eq(signals.process, pid);
    ck_assert(!signals.ends);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
}

/* Whether the first process of a namespace survives. A sanitizer could not look for leaks in a
 * process whose children are in a namespace that has ended. */
static bool survives_in_a_namespace(void)
{
    struct procfs_signals signals;
    bool survives;

    if (unshare(CLONE_NEWPID) < 0)
        return true; /* not permitted */
    pid_t pid = fork();
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    survives =
        procfs_signals(pid, SIGSYS, &signals) == 0 && signals.process == pid && !signals.ends;
    (void)kill(pid, SIGKILL);
    return waitpid(pid, NULL, 0) == pid && survives;
}

TEST(a_signal_without_a_handler_does_not_end_the_first_process_of_a_namespace)
{
    const pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(survives_in_a_namespace() ? 0 : 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

TEST(only_a_cgroup_and_what_is_below_it_is_within_it)
{
    static const char own[] = "/system.slice/trouped.service/supervisor";

    ck_assert(procfs_is_within(own, "web:0", "/system.slice/trouped.service/web:0"));
    ck_assert(procfs_is_within(own, "web:0", "/system.slice/trouped.service/web:0/below"));
    ck_assert(procfs_is_within("/supervisor", "web:0", "/web:0"));
    ck_assert(!procfs_is_within(own, "web:0", "/system.slice/trouped.service/web:01"));
    ck_assert(!procfs_is_within(own, "web:0", "/system.slice/trouped.service/a/web:0"));
    ck_assert(!procfs_is_within(own, "web:0", "/system.slice/trouped.servicf/web:0"));
    ck_assert(!procfs_is_within(own, "web:0", "/system.slice/trouped.service"));
    ck_assert(!procfs_is_within(own, "web:0", "/"));
    ck_assert(!procfs_is_within("", "web:0", ""));
}
