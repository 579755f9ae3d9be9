/* SPDX-License-Identifier: MIT */

/* A real keeper, with this test in the place of the supervisor. */

#include "supervisor/keeper/keeper-private.h"
#include "supervisor/keeper/message.h"
#include "tests/unit/fake-keeper.h"
#include "tests/unit/suite.h"
#include <poll.h>

static int channel = -1;
static struct message message;

/* What this supervisor has been given. */
static struct message_held_end given;
static struct {
    struct message_record record;
    size_t n_fds; /* those that are held, and a pidfd */
    int fds[HOLD_FDS_MAX + 1];
} held[4];
static size_t n_held;

static unsigned receive(void);

static void take_held(void)
{
    ck_assert_uint_lt(n_held, ELEMENTS(held));
    held[n_held].record = message.record;
    held[n_held].n_fds = message.n_fds;
    memcpy(held[n_held].fds, message.fds, message.n_fds * sizeof(int));
    n_held++;
}

/* In the keeper: the time for an upgrade is over. */
static void end_time(int signo)
{
    keeper.due_at = clock_now();
}

/* Called in each supervisor that the keeper starts. */
static void setup(void)
{
    const struct sigaction action = {.sa_handler = end_time};

    (void)sigaction(SIGTRAP, &action, NULL);
    channel = go_under_keeper().channel;
    while (receive() == MESSAGE_HELD)
        take_held();
    given = message.record.end;
}

static void teardown(void)
{
    channel = close_fd(channel);
}

static void request_spawn_with(uint64_t id, char *command, int fd)
{
    char *const argv[] = {"/bin/sh", "-c", command, NULL}, *const environment[] = {NULL};
    _cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const struct spawn_options options = {
        .argv = argv,
        .environment = environment,
        .fds = &(struct spawn_fd){.fd = fd, .number = 3},
        .n_fds = fd >= 0,
        .report_fd = null,
        .cgroup_fd = -1,
    };

    ck_assert_int_eq(message_put_spawn(&message, id, &options), 0);
    ck_assert_int_eq(message_send(channel, &message), 0);
}

static void request_spawn(uint64_t id, char *command)
{
    request_spawn_with(id, command, -1);
}

static void request_kill(uint64_t id, pid_t pid)
{
    message_begin(&message, MESSAGE_KILL, id)->pid = pid;
    ck_assert_int_eq(message_send(channel, &message), 0);
}

static void request_hold(uint64_t id, pid_t pid, const char *text, const int *fds, size_t n_fds)
{
    message_begin(&message, MESSAGE_HOLD, id)->pid = pid;
    ck_assert_int_eq(message_put_held(&message, text, strlen(text) + 1, fds, n_fds), 0);
    ck_assert_int_eq(message_send(channel, &message), 0);
}

static void request_release(uint64_t id)
{
    (void)message_begin(&message, MESSAGE_RELEASE, id);
    ck_assert_int_eq(message_send(channel, &message), 0);
}

static _Noreturn void crash(void)
{
    (void)message_begin(&message, MESSAGE_READY, 0);
    ck_assert_int_eq(message_send(channel, &message), 0);
    (void)kill(getpid(), SIGKILL);
    abort();
}

static unsigned receive(void)
{
    struct pollfd wait = {.fd = channel, .events = POLLIN};

    ck_assert_int_eq(poll(&wait, 1, -1), 1);
    ck_assert_int_eq(message_receive(channel, &message), 0);
    return message_kind_of(&message);
}

/* The answer to request_spawn(). */
static pid_t receive_spawned(uint64_t id)
{
    ck_assert_uint_eq(receive(), MESSAGE_SPAWNED);
    message_close_fds(&message);
    ck_assert_uint_eq(message.record.id, id);
    ck_assert_int_eq(message.record.error, 0);
    return message.record.pid;
}

static struct spawn_exit receive_exited(uint64_t id)
{
    ck_assert_uint_eq(receive(), MESSAGE_EXITED);
    ck_assert_uint_eq(message.record.id, id);
    return message.record.how;
}

/* EXITED is sent before the process is reaped, so that its successor starts earlier. */
TEST(a_process_is_reaped_when_a_request_after_its_end_is_answered)
{
    for (uint64_t id = 1; id < 20; id += 2) {
        request_spawn(id, "exit 0");
        pid_t pid = receive_spawned(id);
        (void)receive_exited(id);
        request_spawn(id + 1, "exit 0");
        (void)receive_spawned(id + 1);
        ck_assert_int_eq(kill(pid, 0), -1); /* a zombie could be signalled */
        ck_assert_int_eq(errno, ESRCH);
        (void)receive_exited(id + 1);
    }
}

TEST(a_kill_that_names_an_earlier_process_of_the_same_pid_does_nothing)
{
    request_spawn(8, "exec sleep 10000");
    pid_t pid = receive_spawned(8);
    request_kill(7, pid);
    request_spawn(9, "exit 0");
    (void)receive_spawned(9);
    (void)receive_exited(9);
    ck_assert_int_eq(kill(pid, 0), 0);
    request_kill(8, pid);
    ck_assert_int_eq(receive_exited(8).code, SIGKILL);
}

static int adopt(pid_t pid)
{
    message_begin(&message, MESSAGE_ADOPT, 8)->pid = pid;
    ck_assert_int_eq(message_send(channel, &message), 0);
    ck_assert_uint_eq(receive(), MESSAGE_SPAWNED);
    ck_assert_uint_eq(message.record.id, 8);
    ck_assert_uint_eq(message.n_fds, message.record.error == 0);
    message_close_fds(&message);
    return message.record.error;
}

/* Returns a process whose parent has ended. */
static pid_t make_orphan(void)
{
    pid_t between, orphan;
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    between = fork();
    if (between == 0) {
        orphan = fork();
        if (orphan == 0)
            for (;;)
                (void)pause();
        _exit(write(fds[1], &orphan, sizeof(orphan)) < 0);
    }
    ck_assert_int_eq(waitpid(between, NULL, 0), between);
    ck_assert_int_eq(read(fds[0], &orphan, sizeof(orphan)), sizeof(orphan));
    return orphan;
}

TEST(only_an_unknown_child_is_adopted)
{
    request_spawn(7, "exec sleep 10000");
    pid_t known = receive_spawned(7), orphan = make_orphan();

    ck_assert_int_eq(adopt(known), -ECHILD);
    ck_assert_int_eq(adopt(getpid()), -ECHILD);
    ck_assert_int_eq(adopt(getppid()), -ECHILD);
    ck_assert_int_eq(adopt(0), -ECHILD);
    ck_assert_int_eq(adopt(-1), -ECHILD);
    ck_assert_int_eq(adopt(orphan), 0);
    ck_assert_int_eq(adopt(orphan), -ECHILD);
    request_kill(8, orphan);
    ck_assert_int_eq(receive_exited(8).code, SIGKILL);
    request_kill(7, known);
    ck_assert_int_eq(receive_exited(7).code, SIGKILL);
}

TEST(what_is_held_reaches_the_next_supervisor)
{
    char text[8];
    int fds[2];

    if (given.n_restarts == 0) {
        ck_assert_int_eq(pipe(fds), 0);
        ck_assert_int_eq(write(fds[1], "hello", 5), 5);
        request_hold(1, 0, "first", NULL, 0);
        request_hold(2, 0, "", fds, 2);
        request_hold(1, 0, "again", fds, 1);
        request_release(2);
        crash();
    }
    ck_assert_uint_eq(given.n_restarts, 1);
    ck_assert_uint_eq(n_held, 1);
    ck_assert_uint_eq(held[0].record.id, 1);
    ck_assert_uint_eq(held[0].record.size, 6);
    ck_assert_str_eq((char *)held[0].record.bytes, "again");
    ck_assert_uint_eq(held[0].record.n_fds, 1);
    ck_assert_int_eq(read(held[0].fds[0], text, sizeof(text)), 5);
    ck_assert_int_eq(read(held[0].fds[0], text, sizeof(text)), 0); /* the write end is dropped */
    ck_assert(!held[0].record.ended && held[0].n_fds == 1);
}

/* The first supervisor leaves an open pipe to its child, the second one waits for its end. It is
 * not executed here, so it would inherit what the keeper still has open for a child that only
 * starts. */
TEST(a_process_that_is_not_held_ends_with_its_supervisor)
{
    char byte;
    int fds[2];

    if (given.n_restarts == 0) {
        ck_assert_int_eq(pipe(fds), 0);
        request_spawn_with(7, "echo >&3; (setsid sleep 10000 & exec sleep 10000)", fds[1]);
        (void)receive_spawned(7);
        ck_assert_int_eq(read(fds[0], &byte, 1), 1);
        request_hold(1, 0, "", fds, 1);
        crash();
    }
    ck_assert_uint_eq(n_held, 1);
    ck_assert_int_eq(read(held[0].fds[0], &byte, 1), 0);
}

static void be_ready(void)
{
    (void)message_begin(&message, MESSAGE_READY, 0);
    ck_assert_int_eq(message_send(channel, &message), 0);
}

/* As ps(1) shows it. */
static char state_of(pid_t pid)
{
    char path[32], text[256] = "", *state;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
    state = strrchr(text, ')');
    ck_assert_ptr_nonnull(state);
    return state[2];
}

/* SIGSTOP takes effect a moment later. */
static void stop_keeper(void)
{
    ck_assert_int_eq(kill(getppid(), SIGSTOP), 0);
    while (state_of(getppid()) != 'T')
        ;
}

/* It would be killed otherwise, and the old program would be started. */
TEST(a_new_program_that_is_ready_in_time_stays_although_the_keeper_hears_of_it_later)
{
    if (given.first) {
        be_ready();
        _exit(KEEPER_EXIT_UPGRADE);
    }
    ck_assert(given.upgrading);
    stop_keeper();
    be_ready();
    ck_assert_int_eq(kill(getppid(), SIGTRAP), 0);
    ck_assert_int_eq(kill(getppid(), SIGCONT), 0);
    request_spawn(7, "exit 3");
    receive_spawned(7);
}

/* Returns when the keeper has passed a stop on. */
static void await_stop(bool ask)
{
    sigset_t forwarded;

    sigemptyset(&forwarded);
    sigaddset(&forwarded, SIGTERM);
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, &forwarded, NULL), 0);
    if (ask)
        ck_assert_int_eq(kill(getppid(), SIGTERM), 0);
    ck_assert_int_eq(sigwaitinfo(&forwarded, NULL), SIGTERM);
}

/* The keeper's status is this test's: it would not be 0 if the new program did not run. */
TEST(a_stop_while_an_upgrade_ends_is_done_by_the_new_program)
{
    if (given.first) {
        be_ready();
        await_stop(true);
        _exit(KEEPER_EXIT_UPGRADE);
    }
    ck_assert(given.upgrading && program_number == 2);
    be_ready(); /* otherwise it has failed, and the old program does the stop */
    await_stop(false);
}

/* It is not ready, and has no time left. */
TEST(a_new_program_that_is_not_ready_in_time_is_replaced_by_the_old_one)
{
    if (given.first) {
        be_ready();
        _exit(KEEPER_EXIT_UPGRADE);
    }
    if (given.upgrading) {
        ck_assert_int_eq(kill(getppid(), SIGTRAP), 0);
        pause();
    }
    ck_assert(given.n_failed_upgrades == 1 && program_number == 1);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
