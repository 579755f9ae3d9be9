/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "tests/unit/parts-fixture.h"
#include "tests/unit/suite.h"

#define N_JOBS 1000

static struct parts parts;
static struct config_daemon daemon_config;
static struct group *group;

static void setup(void)
{
    set_up_parts(&parts, &daemon_config, -1);
    parts.jobs.loop = parts.loop;
    group = add_group(&parts, new_group_config("mail"));
}

static void teardown(void)
{
    remove_group(&parts, group);
    tear_down_parts(&parts);
}

static void add_row(int64_t number, usec_t delay)
{
    const struct job_row row = {
        .number = number,
        .state = JOB_ROW_DELAYED,
        .delay = delay,
        .due = usec_add(delay > 0 ? clock_steady() : clock_realtime(), (3600 * USEC_PER_SEC)),
    };

    ck_assert(cell_later_add_row(group->cell, &row));
}

static uint64_t count(enum job_count what)
{
    return group->cell->counts.n[what];
}

static unsigned n_loops;

static void on_turn(struct loop_deferred *deferred)
{
    if (!parts.jobs.discarded || n_loops++ > N_JOBS) {
        loop_stop(parts.loop);
        return;
    }
    loop_defer(parts.loop, deferred);
}

TEST(jobs_that_leave_are_not_counted_any_more_and_are_freed_in_pieces)
{
    struct loop_deferred turn;

    n_loops = 0;
    for (int64_t number = 1; number <= N_JOBS; number++)
        add_row(number, number % 2 ? (3600 * USEC_PER_SEC) : 0);
    ck_assert_uint_eq(count(JOBS_LIVE), N_JOBS);
    cell_later_leave(group->cell);
    ck_assert_uint_eq(count(JOBS_LIVE) + count(JOBS_ON_DISK) + count(JOBS_BACKOFF), 0);
    ck_assert(!cell_later_has(group->cell, 1));
    ck_assert(!timer_armed(&group->cell->later.date.timer));
    ck_assert(!timer_armed(&group->cell->later.delay.timer));
    add_row(1, 0); /* the group goes on */
    ck_assert(cell_later_has(group->cell, 1));
    cell_later_leave(group->cell);
    remove_group(&parts, group); /* it does not wait for that */
    loop_deferred_init(&turn, on_turn);
    loop_defer(parts.loop, &turn);
    ck_assert_int_eq(loop_run(parts.loop), 0);
    ck_assert_uint_gt(n_loops, 2);
    ck_assert_ptr_null(parts.jobs.discarded);
    group = add_group(&parts, new_group_config("mail"));
}

TEST(jobs_in_review_are_looked_at_in_pieces)
{
    static struct job_pause pause;
    static struct job jobs[N_JOBS];
    unsigned n_turns = 0;

    for (unsigned i = 0; i < N_JOBS; i++) {
        jobs[i] = (struct job){.references = 2, .cell = group->cell, .pause = &pause};
        list_init(&jobs[i].link);
        cell_later_review(&jobs[i]);
    }
    for (; !list_empty(&group->cell->later.in_review); n_turns++)
        cell_later_turn(group->cell);
    ck_assert_uint_gt(n_turns, 2);
    for (unsigned i = 0; i < N_JOBS; i++)
        list_unlink(&jobs[i].link);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
