/* SPDX-License-Identifier: MIT */
#include "supervisor/upgrade/leave.h"

#include "tests/unit/suite.h"
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS 7

/* Both come to this process when their parents have ended. */
static void become_reaper(void)
{
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
}

static pid_t start_leaver(void)
{
    const pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        leave_at_once(STATUS);
    return pid;
}

START_TEST(it_ends_with_the_status_and_its_memory_follows)
{
    int status;
    pid_t pid, heir;

    pid = start_leaver();
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == STATUS);
    heir = waitpid(-1, &status, __WALL);
    ck_assert_int_gt(heir, 0);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_int_lt(waitpid(-1, &status, __WALL), 0);
}
END_TEST

START_TEST(its_descriptors_are_closed_when_it_has_ended)
{
    struct pollfd end = {.events = POLLIN};
    int ends[2], status;
    pid_t pid;

    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(pipe(ends), 0);
        pid = start_leaver();
        ck_assert_int_eq(close(ends[1]), 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        end.fd = ends[0];
        ck_assert_int_eq(poll(&end, 1, 0), 1);
        ck_assert_int_eq(end.revents, POLLHUP);
        ck_assert_int_eq(close(ends[0]), 0);
        ck_assert_int_gt(waitpid(-1, &status, __WALL), 0);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        it_ends_with_the_status_and_its_memory_follows,
        its_descriptors_are_closed_when_it_has_ended,
    };

    return suite_run("leave", become_reaper, NULL, tests, ELEMENTS(tests));
}
