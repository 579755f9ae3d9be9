/* SPDX-License-Identifier: MIT */
#include "supervisor/group/group.h"
#include "supervisor/pool/slot/slot.h"
#include "tests/unit/fake-peer.h"
#include "tests/unit/parts-fixture.h"
#include "tests/unit/suite.h"
#include <sys/eventfd.h>

/*
 * A slot whose keeper and workers are this test: it chooses what the supervisor learns first.
 * There are no processes: a worker is its rings, and an eventfd in place of its pidfd.
 */

struct fake_worker {
    struct slot *slot;
    uint64_t id; /* of its SPAWN */
    int pidfd;
    int report; /* the write end; -1 = its program runs */
    struct channel channel;
};

static struct parts parts;
static struct config_daemon daemon_config;
static struct group *group;
static struct pool *pool;
static int keeper;
static unsigned n_ready; /* "worker.ready" events */
static bool had_come_up; /* the worker that died in the place */
static struct fake_worker workers[2];
static struct message message;

static void on_event(struct event_subscriber *subscriber, const struct event *event)
{
    n_ready += strcmp(event->type, "worker.ready") == 0;
    if (strcmp(event->type, "worker.died") == 0)
        had_come_up = pool->slots[0]->worker.readiness == WORKER_CAME_UP;
}

static struct event_subscriber subscriber = {.fn = on_event};

static void turn(void)
{
    fake_peer_turns(parts.loop, 1);
}

/* ---- the keeper ---- */

/* The descriptor that the worker gets under this number. */
static int copy_fd(const struct message_spawn *spawn, int number)
{
    for (size_t i = 0; i < spawn->options.n_fds; i++)
        if (spawn->options.fds[i].number == number)
            return fcntl(spawn->options.fds[i].fd, F_DUPFD_CLOEXEC, 3);
    return -1;
}

/* Waits for the request of the slot's process. */
static void take_spawn(struct fake_worker *worker, struct slot *slot)
{
    static struct message_spawn spawn;

    while (message_receive(keeper, &message) != 0)
        turn();
    ck_assert_uint_eq(message_kind_of(&message), MESSAGE_SPAWN);
    ck_assert_int_eq(message_take_spawn(&message, &spawn), 0);
    const struct channel_fds fds = {
        .inbox = copy_fd(&spawn, 3),
        .outbox = copy_fd(&spawn, 4),
        .wait_fd = copy_fd(&spawn, 6),
        .wake_fd = copy_fd(&spawn, 7),
    };
    *worker = (struct fake_worker){
        .slot = slot,
        .id = message.record.id,
        .pidfd = eventfd(0, EFD_CLOEXEC),
        .report = fcntl(spawn.options.report_fd, F_DUPFD_CLOEXEC, 3),
        .channel = CHANNEL_NULL,
    };
    message_close_fds(&message);
    ck_assert_int_eq(channel_open(&worker->channel, &fds), 0);
}

static void send_spawned(const struct fake_worker *worker)
{
    message_begin(&message, MESSAGE_SPAWNED, worker->id)->pid = getpid();
    message_put_fd(&message, worker->pidfd);
    ck_assert_int_eq(message_send(keeper, &message), 0);
}

static void send_exited(const struct fake_worker *worker)
{
    message_begin(&message, MESSAGE_EXITED, worker->id)->how =
        (struct spawn_exit){.signalled = true, .code = SIGKILL};
    ck_assert_int_eq(message_send(keeper, &message), 0);
}

/* Lets no other process start: a slot tries again after a death. */
static void refuse_spawn(void)
{
    if (message_receive(keeper, &message) != 0 || message_kind_of(&message) != MESSAGE_SPAWN)
        return;
    message_close_fds(&message);
    message_begin(&message, MESSAGE_SPAWNED, message.record.id)->error = -ECANCELED;
    ck_assert_int_eq(message_send(keeper, &message), 0);
}

/* ---- a worker ---- */

static void run_program(struct fake_worker *worker)
{
    worker->report = close_fd(worker->report);
}

/* The supervisor reads the record at once. */
static void send_ready(struct fake_worker *worker)
{
    void *body;

    ck_assert_int_eq(ring_reserve(&worker->channel.out, 0, &body), 0);
    ring_commit(&worker->channel.out, PROTOCOL_READY, 0);
    channel_publish(&worker->channel);
    (void)endpoint_catch_up(&worker->slot->worker.endpoint);
}

static void die(const struct fake_worker *worker)
{
    ck_assert_int_eq(eventfd_write(worker->pidfd, 1), 0);
}

static void forget(struct fake_worker *worker)
{
    if (worker->id == 0)
        return;
    run_program(worker);
    channel_deinit(&worker->channel);
    close(worker->pidfd);
}

/* ---- the supervisor ---- */

static void make_group(void)
{
    struct config_group *config = new_group_config("test");

    config->size = (struct config_size){1, 1};
    group = add_group(&parts, config);
    pool = &group->cell->pool;
}

static void setup(void)
{
    int fds[2];

    memset(workers, 0, sizeof(workers));
    n_ready = 0;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    keeper = fds[1];
    set_up_parts(&parts, &daemon_config, fds[0]);
    event_subscribe(&parts.events.subscribers, &subscriber);
    make_group();
    group_start(group);
    take_spawn(&workers[0], pool->slots[0]);
}

static void teardown(void)
{
    close_group(group, "it is over");
    group_stop(group, true);
    for (unsigned i = 0; i < ELEMENTS(workers); i++)
        if (workers[i].id != 0)
            send_exited(&workers[i]);
    while (!group_down(group)) {
        refuse_spawn();
        turn();
    }
    for (unsigned i = 0; i < ELEMENTS(workers); i++)
        forget(&workers[i]);
    registry_remove(&parts.registry, group);
    group_free(group);
    event_unsubscribe(&subscriber);
    tear_down_parts(&parts);
    close(keeper);
}

TEST(a_worker_that_says_ready_before_its_process_is_known_is_ready_once_it_is)
{
    send_ready(&workers[0]);
    ck_assert_uint_eq(n_ready, 0);
    run_program(&workers[0]);
    send_spawned(&workers[0]);
    while (n_ready == 0)
        turn();
    ck_assert(slot_is_up(workers[0].slot));
}

TEST(a_worker_whose_start_and_end_are_reported_together_is_not_ready)
{
    send_ready(&workers[0]);
    run_program(&workers[0]);
    die(&workers[0]);
    send_spawned(&workers[0]);
    send_exited(&workers[0]);
    while (parts.deaths.n_total == 0)
        turn();
    ck_assert_uint_eq(n_ready, 0);
    ck_assert(had_come_up);
}

TEST(a_worker_whose_end_is_seen_before_its_start_is_not_ready)
{
    struct process *process = &workers[0].slot->worker.process;

    send_ready(&workers[0]);
    die(&workers[0]);
    send_spawned(&workers[0]);
    while (!process->ended)
        turn();
    ck_assert_int_ge(process->report_fd, 0);
    run_program(&workers[0]);
    while (process->report_fd >= 0)
        turn();
    ck_assert_uint_eq(n_ready, 0);
    ck_assert_int_eq(workers[0].slot->worker.readiness, WORKER_CAME_UP);
}

TEST(a_successor_that_was_ready_and_is_dead_does_not_take_the_place)
{
    struct slot *old = workers[0].slot;

    run_program(&workers[0]);
    send_spawned(&workers[0]);
    while (old->worker.process.pid == 0)
        turn();
    send_ready(&workers[0]);
    ck_assert(slot_is_up(old));
    pool_roll(pool);
    while (!old->standby)
        turn();
    take_spawn(&workers[1], old->standby);
    send_ready(&workers[1]);
    run_program(&workers[1]);
    die(&workers[1]);
    send_spawned(&workers[1]);
    send_exited(&workers[1]);
    while (parts.deaths.n_total == 0)
        turn();
    ck_assert_ptr_eq(pool->slots[0], old);
    ck_assert(slot_is_up(old));
}

const struct suite suite = {.setup = setup, .teardown = teardown};
