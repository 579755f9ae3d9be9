/* SPDX-License-Identifier: MIT */

#include "supervisor/confinement.h"
#include "tests/unit/suite.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

/* Each test is a process of its own, which is confined for good. */
static void setup(void)
{
    ck_assert_int_eq(confinement_apply(), 0);
}

#ifndef __SANITIZE_ADDRESS__

TEST(what_is_never_needed_fails_with_an_error)
{
    ck_assert(unshare(CLONE_NEWNS) < 0 && errno == EPERM);
    ck_assert(setuid(getuid()) < 0 && errno == EPERM);
    ck_assert(mount("none", "/nowhere", "tmpfs", 0, NULL) < 0 && errno == EPERM);
    ck_assert(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 && errno == EPERM);
}

/* Returns 0 with a process that has ended, or -errno. */
static int clone_with(unsigned long flags)
{
    const long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);

    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return -errno;
    ck_assert_int_eq(waitpid((pid_t)pid, NULL, 0), (pid_t)pid);
    return 0;
}

TEST(a_clone_makes_no_namespace_either)
{
    static const unsigned long kinds[] = {CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
                                          CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
                                          CLONE_NEWNET};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        ck_assert_int_eq(clone_with(kinds[i]), -EPERM);
        ck_assert_int_eq(clone_with(kinds[i] | CLONE_NEWUSER), -EPERM);
    }
    ck_assert(syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS);
    ck_assert_int_eq(clone_with(0), 0);
}

#endif

static void *begin(void *userdata)
{
    return userdata;
}

TEST(threads_and_processes_are_made_as_before)
{
    pthread_t thread;
    void *result;
    int status = 0;

    ck_assert_int_eq(pthread_create(&thread, NULL, begin, &status), 0);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_eq(result, &status);
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WEXITSTATUS(status), 7);
}

TEST(everything_else_goes_on)
{
    ck_assert_int_gt(getppid(), 0);
    ck_assert_int_eq(umask(umask(022)), 022);
    free(malloc(1 << 20));
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
TEST(calls_of_other_machines_are_no_way_out)
{
    ck_assert(syscall(0x40000000 | SYS_setuid, getuid()) < 0 && errno == EPERM);
}
#endif

const struct suite suite = {.setup = setup};
