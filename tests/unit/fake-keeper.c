/* SPDX-License-Identifier: MIT */
#include "tests/unit/fake-keeper.h"
#include "shared/base/cleanup.h"
#include "supervisor/keeper/message.h"
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <unistd.h>

struct spawn_exit reap_and_close(const struct spawn_result *result)
{
    struct spawn_exit how;
    struct pollfd poll_fd = {.fd = result->pidfd, .events = POLLIN};
    ck_assert_int_eq(poll(&poll_fd, 1, -1), 1);
    ck_assert_int_eq(spawn_reap(result->pid, &how), 0);
    close_fd(result->pidfd);
    return how;
}

struct sandbox_state spawned_state;

int spawn_and_wait(const struct spawn_options *options, struct spawn_result *ret,
                   const char **ret_step)
{
    struct spawn_options with_report = *options;
    struct spawn_report report;
    int fds[2];
    spawned_state = (struct sandbox_state){0};
    *ret_step = spawn_step_to_string(SPAWN_CLONE);
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    with_report.report_fd = fds[1];
    int r = spawn(&with_report, ret);
    close_fd(fds[1]);
    while (r == 0 && read(fds[0], &report, sizeof(report)) == (ssize_t)sizeof(report)) {
        if (report.error == 0) {
            spawned_state = report.state;
            continue;
        }
        *ret_step = spawn_step_to_string(report.step);
        r = report.error;
        ck_assert_int_eq(reap_and_close(ret).code, 127);
    }
    close_fd(fds[0]);
    return r;
}

unsigned program_number = 1;

static jmp_buf back;
static struct keeper_ends given;

static int go_on(const struct program *program, const struct keeper_ends *ends)
{
    program_number = program->next_fd >= 0 ? 2 : 1;
    given = *ends;
    longjmp(back, 1);
}

static struct program fake_program = {.run = go_on, .path = "/dev/null", .fd = -1, .next_fd = -1};

struct keeper_ends go_under_keeper(void)
{
    if (setjmp(back) == 0)
        _exit(keeper_run(&fake_program));
    return given;
}

struct keeper_ends go_under_new_keeper(void)
{
    static struct message message;

    (void)go_under_keeper();
    struct pollfd wait = {.fd = given.channel, .events = POLLIN};
    ck_assert_int_eq(poll(&wait, 1, -1), 1);
    ck_assert_int_eq(message_receive(given.channel, &message), 0);
    ck_assert_uint_eq(message_kind_of(&message), MESSAGE_HELD_END);
    return given;
}
