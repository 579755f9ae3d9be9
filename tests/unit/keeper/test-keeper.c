/* SPDX-License-Identifier: MIT */

/* A real keeper, with this test in the place of the supervisor. */

#include "shared/base/cleanup.h"
#include "supervisor/keeper/message.h"
#include "tests/unit/fake-keeper.h"
#include "tests/unit/suite.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static int channel = -1;
static struct message message;

static void setup(void)
{
    channel = go_under_keeper().channel;
}

static void teardown(void)
{
    channel = close_fd(channel);
}

static void request_spawn(uint64_t id, char *command)
{
    char *const argv[] = {"/bin/sh", "-c", command, NULL}, *const environment[] = {NULL};
    _cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const struct spawn_options options = {
        .argv = argv, .environment = environment, .report_fd = null, .cgroup_fd = -1};

    ck_assert_int_eq(message_put_spawn(&message, id, &options), 0);
    ck_assert_int_eq(message_send(channel, &message), 0);
}

static void request_kill(uint64_t id, pid_t pid)
{
    ck_assert_int_eq(message_put_kill(&message, &(struct message_kill){.id = id, .pid = pid}), 0);
    ck_assert_int_eq(message_send(channel, &message), 0);
}

static unsigned receive(void)
{
    struct pollfd wait = {.fd = channel, .events = POLLIN};

    ck_assert_int_eq(poll(&wait, 1, -1), 1);
    ck_assert_int_eq(message_receive(channel, &message), 0);
    return message_take_kind(&message);
}

/* The answer to request_spawn(). */
static pid_t receive_spawned(uint64_t id)
{
    struct message_spawned spawned;

    ck_assert_uint_eq(receive(), MESSAGE_SPAWNED);
    ck_assert_int_eq(message_take_spawned(&message, &spawned), 0);
    message_close_fds(&message);
    ck_assert_uint_eq(spawned.id, id);
    ck_assert_int_eq(spawned.error, 0);
    return spawned.pid;
}

static struct spawn_exit receive_exited(uint64_t id)
{
    struct message_exited exited;

    ck_assert_uint_eq(receive(), MESSAGE_EXITED);
    ck_assert_int_eq(message_take_exited(&message, &exited), 0);
    ck_assert_uint_eq(exited.id, id);
    return exited.how;
}

START_TEST(an_end_is_reported_with_its_status_after_the_start)
{
    struct spawn_exit how;

    request_spawn(7, "exit 3");
    receive_spawned(7);
    how = receive_exited(7);
    ck_assert(!how.signalled);
    ck_assert_int_eq(how.code, 3);
}
END_TEST

/* EXITED is sent before the process is reaped, so that its successor starts earlier. */
START_TEST(a_process_is_reaped_when_a_request_after_its_end_is_answered)
{
    for (uint64_t id = 1; id < 20; id += 2) {
        pid_t pid;

        request_spawn(id, "exit 0");
        pid = receive_spawned(id);
        (void)receive_exited(id);
        request_spawn(id + 1, "exit 0");
        (void)receive_spawned(id + 1);
        ck_assert_int_eq(kill(pid, 0), -1); /* a zombie could be signalled */
        ck_assert_int_eq(errno, ESRCH);
        (void)receive_exited(id + 1);
    }
}
END_TEST

START_TEST(a_kill_that_names_an_earlier_process_of_the_same_pid_does_nothing)
{
    pid_t pid;

    request_spawn(8, "exec sleep 10000");
    pid = receive_spawned(8);
    request_kill(7, pid);
    request_spawn(9, "exit 0");
    (void)receive_spawned(9);
    (void)receive_exited(9);
    ck_assert_int_eq(kill(pid, 0), 0);
    request_kill(8, pid);
    ck_assert_int_eq(receive_exited(8).code, SIGKILL);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        an_end_is_reported_with_its_status_after_the_start,
        a_process_is_reaped_when_a_request_after_its_end_is_answered,
        a_kill_that_names_an_earlier_process_of_the_same_pid_does_nothing,
    };

    return suite_run("keeper", setup, teardown, tests, ELEMENTS(tests));
}
