/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/message.h"
#include "supervisor/process/spawner.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"
#include <sys/resource.h>

/* The supervisor's end, with this test in the place of the keeper. */

#define N_CLIENTS 64

static struct loop *loop;
static struct spawner spawner;
static struct spawner_client clients[N_CLIENTS];
static int channel, n_failed, n_started;
static char *variable;

static void on_spawned(struct spawner_client *client, pid_t pid, int pidfd, int error)
{
    ck_assert_int_eq(pidfd, -1);
    ck_assert((error < 0) == (pid == 0));
    n_failed += error < 0;
    n_started += error == 0;
    loop_stop(loop);
}

static const struct spawner_handler HANDLER = {.spawned = on_spawned};

static void setup(void)
{
    int fds[2];
    log_nothing();
    loop = new_loop();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    ck_assert_int_eq(spawner_init(&spawner, loop, fds[0]), 0);
    channel = fds[1];
    variable = malloc(100000);
    ck_assert_ptr_nonnull(variable);
    memset(variable, 'x', 99999);
    variable[99999] = '\0';
}

static void teardown(void)
{
    spawner_deinit(&spawner);
    loop_free(loop);
    free(variable);
    close(channel);
}

static int request(struct spawner_client *client)
{
    char *const argv[] = {"/bin/true", NULL};
    char *const environment[] = {variable, NULL};
    const struct spawn_options options = {
        .argv = argv, .environment = environment, .report_fd = STDERR_FILENO, .cgroup_fd = -1};
    *client = (struct spawner_client){.handler = &HANDLER};
    return spawner_request(&spawner, client, &options);
}

TEST(who_waits_for_room_hears_that_its_request_is_lost)
{
    int n_waiting = 0;
    for (int i = 0; i < N_CLIENTS; i++) {
        bool before = list_empty(&spawner.waiting);
        ck_assert_int_eq(request(&clients[i]), 0);
        n_waiting += !before || !list_empty(&spawner.waiting);
    }
    ck_assert_int_gt(n_waiting, 0);
    ck_assert_int_lt(n_waiting, N_CLIENTS);
    static struct message message;
    while (message_receive(channel, &message) == 0)
        message_close_fds(&message);
    ck_assert_int_eq(shutdown(channel, SHUT_RD), 0);
    ck_assert_int_eq(loop_run(loop), 0); /* until the first has heard */
    ck_assert_int_eq(n_failed, n_waiting);
    ck_assert_uint_eq(spawner.n_unanswered, (unsigned)(N_CLIENTS - n_waiting));
}

/* The kernel counts them for each user, and takes no more than a process may have open. */
TEST(a_request_waits_while_the_user_has_too_many_descriptors_under_way)
{
    static struct message message;
    struct rlimit limit;
    int fds[2];
    if (getuid() == 0)
        ck_assert_int_eq(setuid(65534), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 64;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    message_begin(&message, MESSAGE_SPAWNED, 0)->pid = 1;
    message_put_fd(&message, STDERR_FILENO);
    int r;
    while ((r = message_send(fds[0], &message)) == 0)
        continue;
    ck_assert_int_eq(r, -ENOBUFS);
    ck_assert_int_eq(request(&clients[0]), 0);
    ck_assert(!list_empty(&spawner.waiting));
    ck_assert(timer_armed(&spawner.retry));
    ck_assert_int_eq(message_receive(channel, &message), -EAGAIN);
    close(fds[0]);
    close(fds[1]);
    message_begin(&message, MESSAGE_SPAWNED, clients[0].id)->pid = 1;
    ck_assert_int_eq(message_send(channel, &message), 0);
    while (!list_empty(&spawner.waiting)) /* the kernel counts down when it likes */
        spawner.retry.fn(&spawner.retry, 0);
    ck_assert_int_eq(message_receive(channel, &message), 0);
    ck_assert_uint_eq(message_kind_of(&message), MESSAGE_SPAWN);
    message_close_fds(&message);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(n_started, 1);
}

/* Its owner has forgotten it, but the keeper takes it for one that is wanted. */
TEST(a_process_that_was_given_up_before_it_was_known_is_killed)
{
    static struct message message;
    uint64_t id;

    ck_assert_int_eq(request(&clients[0]), 0);
    ck_assert_int_eq(request(&clients[1]), 0);
    id = clients[0].id;
    spawner_forget(&spawner, &clients[0]);
    message_begin(&message, MESSAGE_SPAWNED, id)->pid = 7;
    ck_assert_int_eq(message_send(channel, &message), 0);
    message_begin(&message, MESSAGE_SPAWNED, clients[1].id)->pid = 1;
    ck_assert_int_eq(message_send(channel, &message), 0);
    ck_assert_int_eq(loop_run(loop), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(message_receive(channel, &message), 0);
        message_close_fds(&message);
    }
    ck_assert_int_eq(message_receive(channel, &message), 0);
    ck_assert_uint_eq(message_kind_of(&message), MESSAGE_KILL);
    ck_assert_uint_eq(message.record.id, id);
    ck_assert_int_eq(message.record.pid, 7);
    ck_assert_int_eq(message_receive(channel, &message), -EAGAIN);
}

static void on_keeper_lost(struct spawner *lost)
{
    ck_assert_ptr_eq(lost, &spawner);
    _exit(EXIT_FAILURE);
}

TEST(the_end_of_the_keeper_is_reported_at_once, .status = EXIT_FAILURE)
{
    spawner.keeper_lost = on_keeper_lost;
    close(channel);
    (void)loop_run(loop);
    _exit(EXIT_SUCCESS); /* not reached */
}

const struct suite suite = {.setup = setup, .teardown = teardown};
