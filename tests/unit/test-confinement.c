/* SPDX-License-Identifier: MIT */

#include "supervisor/confinement.h"
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* Each test is a process of its own, which is confined for good. */
static void setup(void)
{
    ck_assert_int_eq(confinement_apply(), 0);
}

START_TEST(what_is_never_needed_fails_with_an_error)
{
    ck_assert(unshare(CLONE_NEWNS) < 0 && errno == EPERM);
    ck_assert(setuid(getuid()) < 0 && errno == EPERM);
    ck_assert(mount("none", "/nowhere", "tmpfs", 0, NULL) < 0 && errno == EPERM);
    ck_assert(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 && errno == EPERM);
}
END_TEST

START_TEST(everything_else_goes_on)
{
    ck_assert_int_gt(getppid(), 0);
    ck_assert_int_eq(umask(umask(022)), 022);
    free(malloc(1 << 20));
}
END_TEST

#ifdef __x86_64__
START_TEST(calls_of_other_machines_are_no_way_out)
{
    ck_assert(syscall(0x40000000 | SYS_setuid, getuid()) < 0 && errno == EPERM);
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("confinement");
    TCase *tcase = tcase_create("filter");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, everything_else_goes_on);
    if (!SANITIZED)
        tcase_add_test(tcase, what_is_never_needed_fails_with_an_error);
#ifdef __x86_64__
    if (!SANITIZED)
        tcase_add_test(tcase, calls_of_other_machines_are_no_way_out);
#endif
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
