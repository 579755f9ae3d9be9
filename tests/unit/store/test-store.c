/* SPDX-License-Identifier: MIT */
#include "shared/base/cleanup.h"
#include "supervisor/store/job-rows.h"
#include "supervisor/store/store.h"
#include "tests/unit/fixture.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"
#include <semaphore.h>
#include <sqlite3.h>
#include <unistd.h>

static struct scratch scratch;
static struct loop *loop;
static struct store *store;
static enum store_state wanted;

static void on_change(void *userdata, enum store_state state)
{
    if (state == wanted)
        loop_stop(loop);
}

static void on_settled(void *userdata)
{
    loop_stop(loop);
}

static void run_until(enum store_state state)
{
    wanted = state;
    while (store_state(store) != state)
        ck_assert_int_eq(loop_run(loop), 0);
}

static void start(void)
{
    const struct store_options options = {
        .path = scratch.path, .changed = on_change, .settled = on_settled};

    ck_assert_int_eq(store_new(&store, loop, &options), 0);
}

static void setup(void)
{
    scratch_init(&scratch);
    loop = new_loop();
    start();
}

static void teardown(void)
{
    store = store_free(store);
    loop_free(loop);
    scratch_deinit(&scratch);
}

/* A task that adds, removes or looks for a row. */
struct change {
    struct store_task task;
    int64_t number;
    unsigned parts; /* how often apply_parts() ran */
    int result;     /* 1000 = not done */
    unsigned order; /* of done() */
};

static unsigned n_left; /* tasks that are not done */
static unsigned n_done;

static void on_done(struct store_task *task, int result)
{
    list_entry(task, struct change, task)->result = result;
    list_entry(task, struct change, task)->order = ++n_done;
    if (--n_left == 0)
        loop_stop(loop);
}

static int apply_add(struct store_task *task, struct database *database)
{
    struct job_row row = JOB_ROW_NULL;

    row.number = list_entry(task, struct change, task)->number;
    row.group = row.payload = "g";
    row.group_size = 1;
    row.payload_size = 1;
    return job_rows_add(database, &row);
}

static int apply_remove(struct store_task *task, struct database *database)
{
    return job_rows_remove(database, 1u << ROWS_JOB, list_entry(task, struct change, task)->number);
}

static int found(void *userdata, const struct job_row *row)
{
    return 0;
}

static int apply_fetch(struct store_task *task, struct database *database)
{
    return job_rows_fetch(database, list_entry(task, struct change, task)->number, found, NULL);
}

static struct change change(int64_t number, int (*apply)(struct store_task *, struct database *))
{
    return (struct change){
        .task = {.apply = apply, .done = on_done, .addition = apply == apply_add},
        .number = number,
        .result = 1000,
    };
}

static void add(struct change *task)
{
    n_left++;
    store_add(store, &task->task);
}

static void run_until_done(void)
{
    while (n_left > 0)
        ck_assert_int_eq(loop_run(loop), 0);
}

static int fetch(int64_t number)
{
    struct change look = change(number, apply_fetch);

    add(&look);
    run_until_done();
    return look.result;
}

static usec_t turn;
static unsigned n_in_turn, most_in_turn;

static void on_slow_done(struct store_task *task, int result)
{
    if (turn != loop_now(loop))
        n_in_turn = 0;
    turn = loop_now(loop);
    if (++n_in_turn > most_in_turn)
        most_in_turn = n_in_turn;
    (void)usleep(100);
    on_done(task, result);
}

TEST(tasks_that_end_at_once_take_several_turns)
{
    struct change changes[256];

    run_until(STORE_OPEN);
    for (unsigned i = 0; i < ELEMENTS(changes); i++) {
        changes[i] = change(i + 1, apply_add);
        changes[i].task.done = on_slow_done;
        add(&changes[i]);
    }
    run_until_done();
    ck_assert_uint_le(most_in_turn, 64);
    for (unsigned i = 1; i < ELEMENTS(changes); i++)
        ck_assert_uint_eq(changes[i].order, changes[i - 1].order + 1);
}

TEST(what_is_done_is_there_after_the_next_start)
{
    struct change first = change(1, apply_add), second = change(2, apply_add),
                  removal = change(1, apply_remove);

    add(&first);
    add(&second);
    add(&removal);
    run_until_done();
    ck_assert_int_eq(first.result, 0);
    ck_assert_int_eq(second.result, 0);
    ck_assert_int_eq(removal.result, 0);
    store = store_free(store);
    start();
    ck_assert_int_eq(fetch(1), JOB_ROWS_E_MISSING);
    ck_assert_int_eq(fetch(2), 0);
}

TEST(one_that_fails_by_itself_leaves_the_others)
{
    struct change changes[3];

    for (unsigned i = 0; i < 3; i++) {
        changes[i] = change(i < 2 ? 1 : 2, apply_add);
        add(&changes[i]);
    }
    run_until_done();
    ck_assert_int_eq(changes[0].result, 0);
    ck_assert_int_eq(changes[1].result, JOB_ROWS_E_EXISTS);
    ck_assert_int_eq(changes[2].result, 0);
}

TEST(a_task_can_be_taken_back_until_the_thread_has_it)
{
    struct change first = change(1, apply_add), second = change(2, apply_add);

    run_until(STORE_OPEN);
    add(&first);
    add(&second);
    ck_assert(store_cancel(store, &first.task));
    n_left--;
    run_until_done();
    ck_assert(!store_cancel(store, &second.task));
    ck_assert_int_eq(first.result, 1000);
    ck_assert_int_eq(fetch(1), JOB_ROWS_E_MISSING);
    ck_assert_int_eq(fetch(2), 0);
}

TEST(a_lazy_task_goes_with_the_next_one)
{
    struct change lazy = change(1, apply_add), other = change(2, apply_add);

    run_until(STORE_OPEN);
    lazy.task.urgency = STORE_LAZY;
    usec_t began = clock_now();
    add(&lazy);
    run_until_done();
    ck_assert_uint_ge(clock_now() - began, STORE_LAZY_MAX);
    ck_assert_int_eq(lazy.result, 0);
    lazy = change(3, apply_add);
    lazy.task.urgency = STORE_LAZY;
    add(&lazy);
    add(&other);
    run_until_done();
    ck_assert_int_eq(lazy.result, 0);
}

TEST(others_overtake_a_task_that_is_held)
{
    struct change held = change(1, apply_add), other = change(2, apply_add);

    run_until(STORE_OPEN);
    held.task.urgency = STORE_HELD;
    usec_t began = clock_now();
    add(&held);
    add(&other);
    run_until_done();
    ck_assert_uint_ge(clock_now() - began, STORE_HOLD);
    ck_assert_int_eq(held.result, 0);
    ck_assert_uint_gt(held.order, other.order);
}

TEST(a_task_that_is_held_can_be_taken_back)
{
    struct change first = change(1, apply_add), second = change(2, apply_add);

    run_until(STORE_OPEN);
    first.task.urgency = second.task.urgency = STORE_HELD;
    add(&first);
    add(&second);
    ck_assert(store_cancel(store, &first.task));
    n_left--;
    run_until_done();
    ck_assert_int_eq(fetch(1), JOB_ROWS_E_MISSING);
    ck_assert_int_eq(fetch(2), 0);
}

TEST(work_without_the_loop_waits_for_nothing_that_is_held)
{
    struct change held = change(1, apply_add);

    run_until(STORE_OPEN);
    held.task.urgency = STORE_HELD;
    add(&held);
    while (n_left > 0)
        store_work(store, 60 * USEC_PER_SEC);
    ck_assert_int_eq(held.result, 0);
    ck_assert_int_eq(fetch(1), 0);
}

/* Adds a piece of the row in each transaction. */
static int apply_parts(struct store_task *task, struct database *database)
{
    struct change *change = list_entry(task, struct change, task);

    return ++change->parts < 20 ? STORE_E_MORE : apply_add(task, database);
}

TEST(others_overtake_tasks_of_several_transactions)
{
    struct change large[2] = {change(1, apply_parts), change(2, apply_parts)};
    struct change small = change(3, apply_add);

    add(&large[0]);
    add(&large[1]);
    add(&small);
    run_until_done();
    ck_assert_uint_eq(small.order, 1);
    /* Each commit has a part of one of them; the last part of one is followed by the other's. */
    ck_assert_uint_ge(store_stats(store).n_commits, 38);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(large[i].result, 0);
        ck_assert_uint_eq(large[i].parts, 20);
        ck_assert_int_eq(fetch(large[i].number), 0);
    }
}

TEST(the_end_finishes_tasks_of_several_transactions)
{
    struct change large = change(1, apply_parts);

    run_until(STORE_OPEN);
    add(&large);
    store = store_free(store);
    ck_assert_int_eq(large.result, 0);
    start();
    ck_assert_int_eq(fetch(1), 0);
}

static sem_t entered, leave;

/* Keeps the thread until `leave`. */
static int apply_slow_query(struct store_task *task, struct database *database)
{
    (void)sem_post(&entered);
    (void)sem_wait(&leave);
    return 0;
}

/* The thread is in a query when this returns. */
static void begin_slow_query(struct change *slow)
{
    ck_assert_int_eq(sem_init(&entered, 0, 0), 0);
    ck_assert_int_eq(sem_init(&leave, 0, 0), 0);
    *slow = change(0, apply_slow_query);
    slow->task.query = true;
    add(slow);
    ck_assert_int_eq(sem_wait(&entered), 0);
}

TEST(changes_overtake_queries)
{
    struct change slow, queries[20], late = change(1, apply_add);

    run_until(STORE_OPEN);
    begin_slow_query(&slow);
    for (unsigned i = 0; i < 20; i++) {
        queries[i] = change(1, apply_fetch);
        queries[i].task.query = true;
        add(&queries[i]);
    }
    add(&late);
    store_work(store, 0); /* hands the change over */
    (void)sem_post(&leave);
    run_until_done();
    ck_assert_uint_eq(slow.order, 1);
    ck_assert_uint_eq(late.order, 2);
    for (unsigned i = 0; i < 20; i++)
        ck_assert_int_eq(queries[i].result, 0);
}

TEST(queries_of_one_user_do_not_delay_those_of_another)
{
    struct change slow, many[20], other = change(1, apply_fetch);

    run_until(STORE_OPEN);
    begin_slow_query(&slow);
    for (unsigned i = 0; i < 20; i++) {
        many[i] = change(1, apply_fetch);
        many[i].task.query = true;
        many[i].task.asker = 1000;
        add(&many[i]);
    }
    other.task.query = true;
    other.task.asker = 1001;
    add(&other);
    /* The first of a user leaves: the next one takes its place. */
    ck_assert(store_cancel(store, &many[0].task));
    ck_assert(store_cancel(store, &many[5].task));
    n_left -= 2;
    (void)sem_post(&leave);
    run_until_done();
    ck_assert_uint_eq(slow.order, 1);
    ck_assert_uint_eq(many[1].order, 2);
    ck_assert_uint_eq(other.order, 3);
    for (unsigned i = 2; i < 20; i++)
        if (i != 5)
            ck_assert_uint_eq(many[i].order, i + (i < 5 ? 2 : 1));
}

TEST(a_query_leaves_with_its_client)
{
    struct change slow, query = change(1, apply_fetch);

    run_until(STORE_OPEN);
    query.task.query = true;
    begin_slow_query(&slow);
    add(&query);
    ck_assert(store_cancel(store, &query.task));
    ck_assert(!store_cancel(store, &slow.task));
    n_left--;
    (void)sem_post(&leave);
    run_until_done();
    ck_assert(!store_cancel(store, &slow.task));
    ck_assert_int_eq(fetch(1), JOB_ROWS_E_MISSING);
    ck_assert_int_eq(query.result, 1000);
}

TEST(queries_do_not_wait_for_the_lock_of_another_program)
{
    struct change write = change(2, apply_add), query = change(1, apply_fetch);
    sqlite3 *other;

    query.task.query = true;
    run_until(STORE_OPEN);
    ck_assert_int_eq(sqlite3_open(scratch.path, &other), SQLITE_OK);
    (void)sqlite3_busy_timeout(other, 60000);
    ck_assert_int_eq(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    store_add(store, &write.task);
    while (!store_is_writing(store))
        store_work(store, USEC_PER_MSEC);
    add(&query);
    run_until_done();
    ck_assert_int_eq(query.result, JOB_ROWS_E_MISSING);
    ck_assert_int_eq(write.result, 1000);
    n_left++; /* the change */
    ck_assert_int_eq(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(other), SQLITE_OK);
    run_until_done();
    ck_assert_int_eq(write.result, 0);
}

TEST(the_end_writes_what_waits)
{
    struct change lazy = change(1, apply_add), other = change(2, apply_add);
    struct change held = change(3, apply_add);

    lazy.task.urgency = STORE_LAZY;
    held.task.urgency = STORE_HELD;
    add(&held);
    add(&lazy);
    add(&other);
    store = store_free(store);
    ck_assert_int_eq(lazy.result, 0);
    ck_assert_int_eq(held.result, 0);
    ck_assert_int_eq(other.result, 0);
    start();
    ck_assert_int_eq(fetch(1), 0);
    ck_assert_int_eq(fetch(2), 0);
}

TEST(a_store_that_rests_writes_what_it_was_handed_and_then_waits)
{
    struct change first = change(1, apply_add), late = change(2, apply_add);
    struct change query = change(1, apply_fetch);

    query.task.query = true;
    run_until(STORE_OPEN);
    add(&first);
    store_rest(store);
    add(&late);
    add(&query);
    while (!store_rests(store))
        ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(first.result, 0);
    ck_assert_int_eq(late.result, 1000);
    ck_assert_int_eq(query.result, 1000);
    store_work(store, 60 * USEC_PER_SEC);
    ck_assert_int_eq(late.result, 0);
    ck_assert_int_eq(query.result, 1000);
    store_resume(store);
    run_until_done();
    ck_assert_int_eq(query.result, 0);
}

TEST(a_store_ends_while_the_loop_continues)
{
    struct change first = change(1, apply_add), late = change(2, apply_add);

    run_until(STORE_OPEN);
    add(&first);
    store_end(store, STORE_END);
    add(&late);
    while (!store_has_ended(store))
        ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(first.result, 0);
    store = store_free(store);
    ck_assert_int_eq(late.result, -ECANCELED);
    start();
    ck_assert_int_eq(fetch(2), JOB_ROWS_E_MISSING);
}

TEST(numbers_are_never_used_again)
{
    run_until(STORE_OPEN);
    int64_t number = store_next_number(store);
    uint64_t key = store_id_key(store);
    ck_assert_int_eq(store_next_number(store), number + 1);
    store = store_free(store);
    start();
    run_until(STORE_OPEN);
    ck_assert_int_gt(store_next_number(store), number + (INT64_C(1) << 40));
    ck_assert_uint_eq(store_id_key(store), key);
}

static mode_t mode_of(const char *path)
{
    struct stat status;

    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_mode & 0777;
}

TEST(only_the_owner_may_read_the_files)
{
    char log[128];

    run_until(STORE_OPEN);
    (void)snprintf(log, sizeof(log), "%s-wal", scratch.path);
    ck_assert_uint_eq(mode_of(scratch.directory), 0700);
    ck_assert_uint_eq(mode_of(scratch.path), 0600);
    ck_assert_uint_eq(mode_of(log), 0600);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
