/* SPDX-License-Identifier: MIT */

/* Order, delay and room in the queue of a cell whose workers are never started. */

#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "tests/unit/fixture.h"
#include "tests/unit/parts-fixture.h"
#include "tests/unit/suite.h"

static struct parts parts;
static struct config_daemon daemon_config;
static struct config_group *config;
static struct group *group;

static void on_stop(struct loop_deferred *deferred)
{
    loop_stop(parts.loop);
}

static struct loop_deferred stop;

static void setup(void)
{
    set_up_parts(&parts, &daemon_config, -1);
    ck_assert_int_eq(config_defaults(&config, "test"), 0);
    config->size = (struct config_size){1, 1};
    config->queue_max = 3;
    config->queue_memory_max = 1000;
    ck_assert_int_eq(group_new(&group, &parts.groups, config), 0);
    loop_deferred_init(&stop, on_stop);
    give_up_after(parts.loop, 20 * USEC_PER_SEC);
}

static void teardown(void)
{
    close_group(group, "it is over");
    group_free(group);
    tear_down_parts(&parts);
}

static struct cell_request request_of(const char *name)
{
    return (struct cell_request){
        .name = name,
        .options = JOB_OPTIONS_DEFAULT,
        .data = "",
    };
}

static int submit(const struct cell_request *request, struct job **ret)
{
    return group_submit(group, request, ret);
}

static struct job *accepted(const struct cell_request *request)
{
    struct job *job;

    ck_assert_int_eq(submit(request, &job), 0);
    return job;
}

static struct job *queued(const char *name, uint8_t priority)
{
    struct cell_request request = request_of(name);

    request.options.priority = priority;
    return accepted(&request);
}

/* ---- order and delay ---- */

TEST(a_job_whose_date_has_passed_is_queued_at_once)
{
    struct cell_request_rare rare = {.at = clock_realtime() - 1};
    struct cell_request request = request_of("now");

    request.rare = &rare;
    ck_assert_int_eq(accepted(&request)->state, JOB_QUEUED);
}

/* ---- waiting for room ---- */

struct sender {
    struct cell_waiter waiter;
    struct loop_deferred again;
    struct cell_request request;
    struct job *job;
    int result;
};

static unsigned n_answered, n_expected;
static struct sender *order[8];

static void sender_try(struct sender *sender)
{
    sender->request.waiter = &sender->waiter;
    sender->result = submit(&sender->request, &sender->job);
    if (sender->result == CELL_E_WAIT)
        return;
    cell_waiter_reset(&sender->waiter);
    order[n_answered++] = sender;
    if (n_answered == n_expected)
        loop_stop(parts.loop);
}

static void on_again(struct loop_deferred *deferred)
{
    sender_try(list_entry(deferred, struct sender, again));
}

static void on_turn(struct cell_waiter *waiter)
{
    loop_defer(parts.loop, &list_entry(waiter, struct sender, waiter)->again);
}

static void sender_begin(struct sender *sender, const char *data, usec_t wait)
{
    sender->request.data = data;
    sender->request.size = strlen(data);
    sender->request.wait = wait;
    cell_waiter_init(&sender->waiter, on_turn);
    loop_deferred_init(&sender->again, on_again);
    sender_try(sender);
}

static void sender_start(struct sender *sender, const char *data, usec_t wait)
{
    sender->request = request_of("");
    sender_begin(sender, data, wait);
}

static void run_until_answered(unsigned n)
{
    n_expected = n;
    if (n_answered < n)
        ck_assert_int_eq(loop_run(parts.loop), 0);
    ck_assert_uint_eq(n_answered, n);
}

static struct job *jobs[3];

static void fill(void)
{
    n_answered = 0;
    for (unsigned i = 0; i < 3; i++)
        jobs[i] = queued(i == 0 ? "first" : "", 1);
}

TEST(those_who_wait_are_served_in_the_order_they_came_and_before_who_does_not)
{
    struct sender senders[3];
    struct cell_request impatient = request_of("");
    struct job *job;

    fill();
    for (unsigned i = 0; i < 3; i++)
        sender_start(&senders[i], "", USEC_INFINITY);
    ck_assert_int_eq(cell_cancel(jobs[0], PROTOCOL_CAUSE_REQUESTED, 0), 0);
    ck_assert_int_eq(submit(&impatient, &job), CELL_E_BUSY);
    run_until_answered(1);
    ck_assert_ptr_eq(order[0], &senders[0]);
    ck_assert_uint_eq(group->cell->counts.n[JOBS_WAITERS], 2);
    ck_assert_int_eq(cell_cancel(jobs[1], PROTOCOL_CAUSE_REQUESTED, 0), 0);
    ck_assert_int_eq(cell_cancel(jobs[2], PROTOCOL_CAUSE_REQUESTED, 0), 0);
    run_until_answered(3);
    ck_assert_ptr_eq(order[1], &senders[1]);
    ck_assert_ptr_eq(order[2], &senders[2]);
}

/* Starts two senders, which wait for room. */
static void start_two(struct sender *senders)
{
    fill();
    sender_start(&senders[0], "", USEC_INFINITY);
    sender_start(&senders[1], "", USEC_INFINITY);
}

TEST(one_is_called_for_a_place_and_no_more)
{
    struct sender senders[2];

    start_two(senders);
    ck_assert_int_eq(cell_cancel(jobs[0], PROTOCOL_CAUSE_REQUESTED, 0), 0);
    run_until_answered(1);
    ck_assert_int_eq(senders[1].result, CELL_E_WAIT);
    ck_assert(!senders[1].waiter.called);
    cell_waiter_stop(&senders[1].waiter);
}

static void stop_the_loop(struct cell_waiter *waiter)
{
    loop_stop(parts.loop);
}

TEST(beside_the_place_of_one_that_was_called_others_are_free)
{
    struct sender sender;
    struct cell_request impatient = request_of("");
    struct job *job;

    fill();
    sender_start(&sender, "", USEC_INFINITY);
    sender.waiter.turn = stop_the_loop;
    group->config->queue_max = 5;
    cell_review(group->cell);
    ck_assert_int_eq(loop_run(parts.loop), 0);
    ck_assert(sender.waiter.called);
    ck_assert_int_eq(submit(&impatient, &job), 0);
    ck_assert_int_eq(submit(&impatient, &job), CELL_E_BUSY);
    sender_try(&sender);
    ck_assert_int_eq(sender.result, 0);
}

TEST(one_that_was_called_and_goes_away_leaves_its_place_to_the_next)
{
    struct sender senders[2];

    start_two(senders);
    senders[0].waiter.turn = stop_the_loop;
    ck_assert_int_eq(cell_cancel(jobs[0], PROTOCOL_CAUSE_REQUESTED, 0), 0);
    ck_assert_int_eq(loop_run(parts.loop), 0);
    ck_assert(senders[0].waiter.called);
    cell_waiter_stop(&senders[0].waiter);
    run_until_answered(1);
    ck_assert_ptr_eq(order[0], &senders[1]);
    ck_assert_int_eq(senders[1].result, 0);
}

TEST(one_that_is_refused_when_called_leaves_its_place_to_the_next)
{
    struct sender senders[2];

    start_two(senders);
    ck_assert_int_eq(cell_cancel(jobs[1], PROTOCOL_CAUSE_REQUESTED, 0), 0);
    jobs[1] = NULL;
    senders[0].request.name = jobs[0]->name;
    run_until_answered(2);
    ck_assert_int_eq(senders[0].result, CELL_E_EXISTS);
    ck_assert_int_eq(senders[1].result, 0);
}

TEST(a_large_one_whose_time_is_over_holds_up_nobody)
{
    static char large[901];
    struct sender first, half, small;

    n_answered = 0;
    memset(large, 'x', 900);
    sender_start(&first, large, USEC_INFINITY);
    sender_start(&half, large, USEC_PER_MSEC);
    cell_call_waiters(group->cell);
    loop_undefer(&half.again);
    sender_try(&half);
    sender_start(&small, "small", USEC_INFINITY);
    run_until_answered(3);
    ck_assert_ptr_eq(order[1], &half);
    ck_assert_int_eq(half.result, CELL_E_BUSY);
    ck_assert_int_eq(small.result, 0);
}

TEST(a_large_one_for_later_holds_up_nobody_when_it_has_its_place)
{
    static char large[901];
    struct cell_request_rare rare = {.delay = 3600 * USEC_PER_SEC};
    struct sender first, half, small;

    n_answered = 0;
    memset(large, 'x', 900);
    sender_start(&first, large, USEC_INFINITY);
    sender_start(&half, large, USEC_INFINITY);
    half.request.rare = &rare;
    sender_start(&small, "small", USEC_INFINITY);
    ck_assert_int_eq(cell_cancel(first.job, PROTOCOL_CAUSE_REQUESTED, 0), 0);
    run_until_answered(3);
    ck_assert_int_eq(half.job->state, JOB_DELAYED);
    ck_assert_int_eq(small.result, 0);
}

TEST(a_large_one_is_not_overtaken_by_small_ones_while_it_waits_for_memory)
{
    static char half[501], large[901];
    struct sender first, second, big, small;

    n_answered = 0;
    memset(half, 'x', 500);
    memset(large, 'x', 900);
    sender_start(&first, half, 0);
    sender_start(&second, "second", 0);
    sender_start(&big, large, USEC_INFINITY);
    ck_assert_int_eq(big.result, CELL_E_WAIT);
    sender_start(&small, "small", USEC_INFINITY);
    ck_assert_int_eq(small.result, CELL_E_WAIT);
    ck_assert_int_eq(cell_cancel(second.job, PROTOCOL_CAUSE_REQUESTED, 0), 0);
    loop_defer(parts.loop, &stop); /* after the cell has looked */
    ck_assert_int_eq(loop_run(parts.loop), 0);
    ck_assert(!big.waiter.called && !small.waiter.called);
    ck_assert_int_eq(cell_cancel(first.job, PROTOCOL_CAUSE_REQUESTED, 0), 0);
    run_until_answered(4);
    ck_assert_ptr_eq(order[2], &big);
    ck_assert_ptr_eq(order[3], &small);
    ck_assert_int_eq(big.result, 0);
    ck_assert_int_eq(small.result, 0);
}

TEST(a_large_one_of_a_submitter_holds_up_nobody_while_it_waits_for_memory)
{
    static char half[501];
    struct cell_request impatient = request_of("");
    struct sender first, small, big;

    n_answered = 0;
    memset(half, 'x', 500);
    sender_start(&first, half, 0);
    sender_start(&small, "small", 0);
    big.request = request_of("");
    big.request.bounded = true;
    big.request.submitter_uid = 1;
    sender_begin(&big, half, USEC_INFINITY);
    ck_assert_int_eq(big.result, CELL_E_WAIT);
    (void)accepted(&impatient);
    ck_assert_int_eq(cell_cancel(small.job, PROTOCOL_CAUSE_REQUESTED, 0), 0);
    ck_assert_int_eq(cell_cancel(first.job, PROTOCOL_CAUSE_REQUESTED, 0), 0);
    run_until_answered(3);
    ck_assert_int_eq(big.result, 0);
}

TEST(checkpoints_of_one_submitter_leave_room_for_the_jobs_of_others)
{
    struct cell_request request = request_of("");
    char bytes[400] = {0};
    struct job *job[3];

    config->queue_max = 10;
    request.bounded = true;
    request.submitter_uid = 1000;
    for (unsigned i = 0; i < 3; i++) {
        job[i] = accepted(&request);
        cell_job_checkpoint(&job[i]->cell->pool, job[i], bytes, sizeof(bytes));
    }
    ck_assert_ptr_nonnull(job_checkpoint(job[0]));
    ck_assert_ptr_null(job_checkpoint(job[1]));
    request.submitter_uid = 1001;
    request.data = bytes;
    request.size = sizeof(bytes);
    (void)accepted(&request);
    request.submitter_uid = 1000;
    request.size = 200;
    ck_assert_int_eq(submit(&request, &job[2]), CELL_E_BUSY);
    cell_job_checkpoint(&job[0]->cell->pool, job[0], bytes, 1);
    request.size = 10;
    (void)accepted(&request);
}

TEST(a_group_that_is_removed_tells_those_who_wait)
{
    struct sender sender;

    fill();
    group->cell->pool.wanted = group->wanted = true;
    sender_start(&sender, "", USEC_INFINITY);
    group_remove(group);
    run_until_answered(1);
    ck_assert_int_eq(sender.result, CELL_E_STOPPING);
}

TEST(who_waits_outlives_a_cell_that_goes_away)
{
    struct sender sender;
    struct cell *cell;

    fill();
    ck_assert_int_eq(cell_new(&cell, group, ""), 0);
    sender.request = request_of("");
    sender.request.wait = USEC_INFINITY;
    sender.request.waiter = &sender.waiter;
    cell_waiter_init(&sender.waiter, on_turn);
    loop_deferred_init(&sender.again, on_again);
    group->config->queue_max = 0;
    ck_assert_int_eq(cell_submit(cell, &sender.request, &sender.job), CELL_E_WAIT);
    group->config->queue_max = 4;
    cell_free(cell);
    ck_assert_ptr_null(sender.waiter.cell);
    run_until_answered(1);
    ck_assert_int_eq(sender.result, 0);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
