/* SPDX-License-Identifier: MIT */

/* What a supervisor holds, and the next one takes, with a real keeper between them. */

#include "supervisor/keeper/message.h"
#include "supervisor/process/holding.h"
#include "supervisor/process/process.h"
#include "tests/unit/fake-keeper.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"

#define TIMEOUT (60 * USEC_PER_SEC)

static struct process_context context;
static struct held_table *table = &context.held;
static struct spawner *spawner = &context.spawner;

/* One process. */
static struct {
    struct spawner_client client;
    struct holding holding;
    uint64_t id;
    pid_t pid;
    bool exited;
    struct spawn_exit how;
} worker;

static void on_spawned(struct spawner_client *client, pid_t pid, int pidfd, int error)
{
    ck_assert_int_eq(error, 0);
    worker.id = client->id;
    close_fd(pidfd);
    worker.pid = pid;
    loop_stop(context.loop);
}

static void on_exited(struct spawner_client *client, const struct spawn_exit *how)
{
    worker.exited = true;
    worker.how = *how;
    loop_stop(context.loop);
}

static const struct spawner_handler HANDLER = {.spawned = on_spawned, .exited = on_exited};

static usec_t loop_made_at;

/* Called in each supervisor that the keeper starts. */
static void setup(void)
{
    const int channel = go_under_keeper().channel;

    context.loop = new_loop();
    loop_made_at = clock_now();
    while (clock_now() == loop_made_at)
        ;
    ck_assert_int_eq(process_context_init(&context, context.loop, channel), 0);
    ck_assert_int_eq(held_collect(table, spawner, TIMEOUT), 0);
    worker.client.handler = &HANDLER;
}

static void teardown(void)
{
    process_context_deinit(&context);
    loop_free(context.loop);
}

static void start(char *command)
{
    char *const argv[] = {"/bin/sh", "-c", command, NULL}, *const environment[] = {NULL};
    _cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const struct spawn_options options = {
        .argv = argv, .environment = environment, .report_fd = null, .cgroup_fd = -1};

    ck_assert_int_eq(spawner_request(spawner, &worker.client, &options), 0);
    ck_assert_int_eq(loop_run(context.loop), 0);
    ck_assert_int_gt(worker.pid, 0);
}

static void run_another(void)
{
    worker.exited = false;
    start("exit 0");
    while (!worker.exited)
        ck_assert_int_eq(loop_run(context.loop), 0);
}

/* Also a process whose end is known already, as if the HOLD had been under way. */
static void hold(const char *name, const int *fds, size_t n_fds)
{
    worker.client.id = worker.id;
    ck_assert_int_eq(holding_put(&worker.holding, spawner, &worker.client, worker.pid,
                                 &(struct holding_content){.kind = HOLDING_WORKER,
                                                           .version = 3,
                                                           .name = name,
                                                           .data = "data",
                                                           .size = 5,
                                                           .fds = fds,
                                                           .n_fds = n_fds}),
                     0);
}

static _Noreturn void crash(void)
{
    spawner_tell(spawner, MESSAGE_READY);
    (void)kill(getpid(), SIGKILL);
    abort();
}

TEST(a_text_is_found_as_it_was_held_last)
{
    static const struct holding_content content = {.kind = HOLDING_CONFIG, .name = "group"};
    const struct held *held = held_find(table, HOLDING_CONFIG, "group");
    char *text = NULL;
    size_t size = 0;

    ck_assert((held != NULL) == (table->end.n_restarts > 0));
    if (held) {
        ck_assert_int_eq(held_read_text(held, &text, &size), 0);
        ck_assert_uint_eq(size, 100 * 1000 * table->end.n_restarts - 1);
        ck_assert_int_eq(text[size - 1], 'a');
        free(text);
        held_adopt(held_take(table, HOLDING_CONFIG, "group"), &worker.client, &worker.holding);
    }
    text = calloc(3, 100 * 1000);
    memset(text, 'a', 3 * 100 * 1000);
    size = 100 * 1000 * (table->end.n_restarts + 1) - 1;
    ck_assert_int_eq(
        holding_put_text(&worker.holding, spawner, &worker.client, &content, text, size), 0);
    free(text);
    if (table->end.n_restarts < 2)
        crash();
}

TEST(a_worker_is_found_by_kind_and_name_and_its_end_is_told_to_the_new_owner)
{
    if (table->end.n_restarts == 0) {
        start("exec sleep 10000");
        hold("group/0", (int[]){STDERR_FILENO}, 1);
        crash();
    }
    ck_assert_ptr_null(held_take(table, HOLDING_WORKER, "group/1"));
    ck_assert_ptr_null(held_take(table, HOLDING_CLIENT, "group/0"));
    struct held *held = held_take(table, HOLDING_WORKER, "group/0");
    ck_assert_ptr_nonnull(held);
    ck_assert_ptr_null(held_take(table, HOLDING_WORKER, "group/0"));
    ck_assert_uint_eq(held->version, 3);
    ck_assert_uint_eq(held->size, 5);
    ck_assert_str_eq((const char *)held->data, "data");
    ck_assert_uint_eq(held->n_fds, 1);
    ck_assert_int_eq(fcntl(held->pidfd, F_GETFD), FD_CLOEXEC);
    worker.pid = held->pid;
    held_adopt(held, &worker.client, &worker.holding);
    if (table->end.n_restarts == 1)
        crash(); /* it is still held */
    spawner_kill(spawner, &worker.client, worker.pid);
    ck_assert_int_eq(loop_run(context.loop), 0);
    ck_assert(worker.exited && worker.how.code == SIGKILL);
}

static int n_ending;

static void on_worker_ends(void *userdata, const char *name, int change)
{
    ck_assert_str_eq(name, "group/0");
    n_ending += change;
}

TEST(what_nobody_takes_is_killed_and_not_held_any_more)
{
    struct held *held;
    pid_t pid;

    if (table->end.n_restarts == 0) {
        start("exec sleep 10000");
        hold("group/0", NULL, 0);
        crash();
    }
    if (table->end.n_restarts == 1) {
        ck_assert(!list_empty(&table->waiting));
        pid = list_entry(table->waiting.next, struct held, link)->pid;
        table->worker_ends = on_worker_ends;
        held_discard_rest(table);
        ck_assert_int_eq(n_ending, 1);
        while (!list_empty(&table->discarded)) /* other messages stop the loop in between */
            run_another();
        ck_assert_int_eq(n_ending, 0);
        ck_assert_int_eq(kill(pid, 0), -1);
        crash();
    }
    held = held_take_any(table, HOLDING_WORKER);
    ck_assert_ptr_null(held);
}

TEST(an_end_that_the_old_supervisor_was_told_of_is_told_to_the_new_one_as_well)
{
    if (table->end.n_restarts == 0) {
        start("exec sleep 10000");
        hold("group/0", NULL, 0);
        spawner_kill(spawner, &worker.client, worker.pid);
        while (!worker.exited)
            ck_assert_int_eq(loop_run(context.loop), 0);
        crash();
    }
    struct held *held = held_take(table, HOLDING_WORKER, "group/0");
    ck_assert_ptr_nonnull(held);
    ck_assert(held->ended && held->how.code == SIGKILL);
    held_adopt(held, &worker.client, &worker.holding);
    ck_assert_uint_eq(worker.client.id, 0);
    ck_assert_uint_ne(worker.holding.id, 0);
    holding_drop(&worker.holding, spawner);
}

TEST(how_a_process_ended_before_it_was_held_is_known)
{
    if (table->end.n_restarts == 0) {
        start("exit 5");
        while (!worker.exited)
            ck_assert_int_eq(loop_run(context.loop), 0);
        hold("group/0", NULL, 0);
        hold("group/0", NULL, 0);
        crash();
    }
    struct held *held = held_take(table, HOLDING_WORKER, "group/0");
    ck_assert_ptr_nonnull(held);
    ck_assert(held->ended && !held->how.unknown);
    ck_assert_int_eq(held->how.code, 5);
    held_discard(held);
}

TEST(an_id_of_the_old_supervisor_is_not_given_again)
{
    struct spawner_client others[8] = {0}, client = {0};
    struct holding holding = {0};
    struct held *held;

    if (table->end.n_restarts == 0) {
        for (size_t i = 0; i < ELEMENTS(others); i++)
            ck_assert_int_eq(spawner_register(spawner, &others[i]), 0);
        for (size_t i = 0; i < ELEMENTS(others); i += 3)
            ck_assert_int_eq(
                holding_put(&holding, spawner, &others[i], 0,
                            &(struct holding_content){.kind = HOLDING_CLIENT, .name = "client"}),
                0);
        crash();
    }
    for (size_t i = 0; i < ELEMENTS(others); i++)
        ck_assert_int_eq(spawner_register(spawner, &others[i]), 0);
    for (int n = 0; n < 3; n++) {
        held = held_take_any(table, HOLDING_CLIENT);
        ck_assert_ptr_nonnull(held);
        held_adopt(held, &client, &holding);
        for (size_t i = 0; i < ELEMENTS(others); i++)
            ck_assert_uint_ne(others[i].id, client.id);
    }
    ck_assert_ptr_null(held_take_any(table, HOLDING_CLIENT));
}

/* A program that was started for an upgrade in advance may wait for long. */
TEST(both_are_found_of_a_process_that_has_ended_and_one_that_has_its_place)
{
    struct held *ended, *living;

    if (table->end.n_restarts == 0) {
        run_another();
        hold("group/0", NULL, 0);
        const uint64_t first = worker.id;

        worker.holding = (struct holding){0};
        start("exec sleep 10000");
        hold("group/1", NULL, 0);
        ck_assert_uint_eq((uint32_t)worker.id, (uint32_t)first);
        crash();
    }
    ended = held_take(table, HOLDING_WORKER, "group/0");
    living = held_take(table, HOLDING_WORKER, "group/1");
    ck_assert_ptr_nonnull(ended);
    ck_assert_ptr_nonnull(living);
    ck_assert(ended->ended);
    ck_assert(!living->ended);
    const uint64_t ids[] = {ended->holding.id, living->holding.id};

    held_discard(ended);
    run_another();
    ck_assert_uint_ne(worker.id, ids[0]);
    ck_assert_uint_ne(worker.id, ids[1]);
    held_adopt(living, &worker.client, &worker.holding);
    worker.exited = false;
    spawner_kill(spawner, &worker.client, worker.pid);
}

TEST(the_time_of_the_loop_is_that_after_the_waiting)
{
    ck_assert_uint_gt(loop_now(context.loop), loop_made_at);
}

TEST(without_a_keeper_nothing_is_held)
{
    struct held_table none = {0};
    struct spawner nobody = {.fd = -1};

    ck_assert_int_eq(held_collect(&none, &nobody, TIMEOUT), 0);
    ck_assert_ptr_null(held_take(&none, HOLDING_WORKER, "group/0"));
    held_deinit(&none);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
