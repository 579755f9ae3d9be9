/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/work-queue.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"

/* Slow tasks are so by the clock itself: no machine is too fast or too slow for them. */

#define N_TASKS 8

static struct loop *loop;
static struct work_queue queue;
static struct task tasks[N_TASKS];
static usec_t takes; /* each of them */
static bool again;   /* each queues itself once more */
static unsigned order[64], n;
static struct loop_hot hot; /* somebody else's ring */
static unsigned n_polls;

static void on_task(struct task *task)
{
    const usec_t end = usec_add(clock_now(), takes);

    order[n++] = (unsigned)(task - tasks);
    while (clock_now() < end)
        ;
    if (again)
        task_queue(task);
}

static bool on_poll(struct loop_hot *self)
{
    n_polls++;
    loop_stop(loop);
    return true;
}

static bool on_cool(struct loop_hot *self)
{
    return false;
}

static void setup(void)
{
    loop = new_loop();
    work_queue_init(&queue, loop);
    for (unsigned i = 0; i < N_TASKS; i++)
        task_init(&tasks[i], &queue, on_task);
    loop_hot_init(&hot, on_poll, on_cool);
    loop_heat(loop, &hot);
    takes = 0;
    again = false;
    n = n_polls = 0;
}

static void teardown(void)
{
    loop_unheat(loop, &hot);
    work_queue_deinit(&queue);
    loop_free(loop);
}

static void run_all(void)
{
    for (unsigned i = 0; i < N_TASKS; i++)
        task_run(&tasks[i]);
}

static void run_one_turn(void)
{
    ck_assert_int_eq(loop_run(loop), 0);
}

TEST(a_task_that_was_not_slow_can_run_at_once)
{
    task_run(&tasks[3]);
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(order[0], 3);
    ck_assert(!tasks[3].slow);
}

TEST(others_have_their_turn_between_any_two_slow_tasks)
{
    takes = WORK_QUEUE_BUDGET;
    run_all();
    ck_assert_uint_eq(n, 1);
    for (unsigned turn = 1; turn < N_TASKS; turn++) {
        run_one_turn();
        ck_assert_uint_eq(n_polls, turn);
        ck_assert_uint_eq(n, turn + 1);
    }
    for (unsigned i = 0; i < N_TASKS; i++)
        ck_assert_uint_eq(order[i], i);
}

TEST(a_slow_task_waits_the_next_time_and_others_go_before_it)
{
    takes = WORK_QUEUE_BUDGET;
    task_run(&tasks[0]);
    takes = 0;
    run_one_turn();
    task_run(&tasks[0]);
    ck_assert_uint_eq(n, 1);
    task_run(&tasks[1]);
    ck_assert_uint_eq(n, 2);
    run_one_turn();
    ck_assert_uint_eq(n, 3);
    ck_assert_uint_eq(order[2], 0);
    task_run(&tasks[0]); /* fast again */
    ck_assert_uint_eq(n, 4);
}

/* The order in which workers start is documented. */
TEST(a_prompt_queue_keeps_its_order_whatever_was_slow)
{
    queue.prompt = true;
    takes = WORK_QUEUE_SLOW;
    task_queue(&tasks[0]);
    run_one_turn();
    takes = 0;
    n = 0;
    task_queue(&tasks[0]);
    task_queue(&tasks[1]);
    run_one_turn();
    ck_assert_uint_eq(n, 2);
    ck_assert_uint_eq(order[0], 0);
    ck_assert_uint_eq(order[1], 1);
}

TEST(a_slow_task_is_not_starved_by_those_that_are_not)
{
    tasks[0].slow = true;
    task_queue(&tasks[0]);
    takes = WORK_QUEUE_SLOW - 1;
    for (unsigned i = 1; i < N_TASKS; i++)
        task_queue(&tasks[i]);
    run_one_turn();
    ck_assert_uint_lt(n, N_TASKS);
    ck_assert_uint_eq(order[n - 1], 0);
}

TEST(a_task_that_is_cancelled_does_not_run)
{
    takes = WORK_QUEUE_BUDGET;
    run_all();
    for (unsigned i = 1; i < N_TASKS; i++)
        task_cancel(&tasks[i]);
    run_one_turn();
    run_one_turn();
    ck_assert_uint_eq(n, 1);
}

TEST(a_task_that_queues_itself_runs_once_in_a_turn)
{
    again = true;
    task_queue(&tasks[0]);
    task_queue(&tasks[0]);
    while (n < 4) { /* not in a turn within the same microsecond */
        const unsigned before = n;

        run_one_turn();
        ck_assert_uint_le(n, before + 1);
    }
}

static void queue_one(struct loop_deferred *deferred)
{
    task_queue(&tasks[0]);
}

TEST(what_is_queued_in_a_turn_waits_for_the_next_one)
{
    struct loop_deferred deferred;

    loop_deferred_init(&deferred, queue_one);
    loop_defer(loop, &deferred);
    run_one_turn();
    ck_assert_uint_eq(n, 0);
    run_one_turn();
    ck_assert_uint_eq(n, 1);
}

TEST(no_task_runs_while_the_queue_is_held)
{
    work_queue_hold(&queue, true);
    task_queue(&tasks[0]);
    run_one_turn();
    run_one_turn();
    ck_assert_uint_eq(n, 0);
    work_queue_hold(&queue, false);
    run_one_turn();
    ck_assert_uint_eq(n, 1);
}

/* Gives its memory to somebody else, as far as the queue is concerned. */
static void hold_and_end(struct task *task)
{
    n++;
    work_queue_hold(&queue, true);
    task_cancel(task);
    memset(task, 'x', sizeof(*task));
}

TEST(a_task_may_hold_the_queue_and_free_itself)
{
    struct task task, ended;

    memset(&ended, 'x', sizeof(ended));
    task_init(&task, &queue, hold_and_end);
    task_queue(&task);
    task_queue(&tasks[0]);
    run_one_turn();
    ck_assert_uint_eq(n, 1);
    ck_assert_mem_eq(&task, &ended, sizeof(task));
}

const struct suite suite = {.setup = setup, .teardown = teardown};
