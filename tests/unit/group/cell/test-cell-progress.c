/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-progress.h"
#include "tests/unit/suite.h"

#define PERIOD (100 * USEC_PER_SEC)

static struct cell_progress progress;
static struct cell_progress_view view;
static usec_t next;

static void setup(void)
{
    progress = (struct cell_progress){.moved_at = 1000, .mark = 7};
    view = (struct cell_progress_view){
        .period = PERIOD, .has_work = true, .may_move = true, .mark = 7};
}

static bool look(usec_t now)
{
    return cell_progress_look(&progress, &view, now, &next);
}

TEST(O5_work_in_which_nothing_moved_for_the_period_has_stalled)
{
    ck_assert(look(1000 + PERIOD));
}

TEST(O5_a_timer_that_fires_too_early_is_armed_for_the_rest)
{
    ck_assert(!look(1000 + PERIOD - 1));
    ck_assert_uint_eq(next, 1000 + PERIOD);
}

TEST(O5_a_move_puts_it_off)
{
    progress.moved_at = 5000;
    ck_assert(!look(1000 + PERIOD));
    ck_assert_uint_eq(next, 5000 + PERIOD);
    ck_assert(look(5000 + PERIOD));
}

TEST(O5_a_state_that_was_published_is_a_move)
{
    view.mark++;
    ck_assert(!look(1000 + PERIOD));
    ck_assert_uint_eq(next, 1000 + 2 * PERIOD);
    ck_assert(look(1000 + 2 * PERIOD));
}

TEST(O5_an_idle_cell_has_not_stalled_and_is_not_looked_at)
{
    view.has_work = false;
    ck_assert(!look(1000 + 10 * PERIOD));
    ck_assert_uint_eq(next, USEC_INFINITY);
}

TEST(O5_what_is_paused_or_has_no_worker_has_not_stalled_and_begins_anew_afterwards)
{
    view.may_move = false;
    ck_assert(!look(1000 + 10 * PERIOD));
    ck_assert_uint_eq(next, 1000 + 11 * PERIOD);
    view.may_move = true;
    ck_assert(!look(1000 + 11 * PERIOD - 1));
    ck_assert(look(1000 + 11 * PERIOD));
}

TEST(O5_after_a_stall_the_next_one_takes_a_whole_period)
{
    ck_assert(look(1000 + PERIOD));
    ck_assert_uint_eq(next, 1000 + 2 * PERIOD);
    ck_assert(!look(1000 + 2 * PERIOD - 1));
}

TEST(O5_without_a_period_nobody_looks)
{
    view.period = USEC_INFINITY;
    ck_assert(!look(USEC_INFINITY - 1));
    ck_assert_uint_eq(next, USEC_INFINITY);
}

const struct suite suite = {.setup = setup};
