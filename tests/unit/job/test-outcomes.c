/* SPDX-License-Identifier: MIT */
#include "supervisor/job/outcomes.h"
#include "tests/unit/suite.h"

static struct outcomes outcomes;
static usec_t now;

static void setup(void)
{
    outcomes = (struct outcomes){0};
    now = 1000;
}

static void end_jobs(unsigned n, bool dead)
{
    for (unsigned i = 0; i < n; i++)
        outcomes_add(&outcomes, dead, ++now);
}

TEST(a_single_dead_job_is_no_failing_group)
{
    end_jobs(OUTCOMES_ENOUGH - 1, true);
    ck_assert(!outcomes_failing(&outcomes));
}

TEST(a_group_that_has_worked_for_long_is_failing_soon_after_it_breaks)
{
    end_jobs(5000, false);
    end_jobs(OUTCOMES_MAX / 2, true);
    ck_assert(outcomes_failing(&outcomes));
    ck_assert_uint_eq(outcomes_count_dead(&outcomes), OUTCOMES_MAX / 2);
    ck_assert_uint_eq(outcomes.since, 6001);
    end_jobs(5000, true);
    ck_assert_uint_eq(outcomes_count_dead(&outcomes), OUTCOMES_MAX);
    ck_assert_uint_eq(outcomes.n, OUTCOMES_MAX);
    ck_assert_uint_eq(outcomes.since, 6001);
}

TEST(a_group_that_works_again_is_not_failing_whatever_it_did_before)
{
    end_jobs(5000, true);
    end_jobs(OUTCOMES_MAX, false);
    ck_assert(!outcomes_failing(&outcomes));
    ck_assert_uint_eq(outcomes.since, 0);
    ck_assert_uint_eq(outcomes_count_dead(&outcomes), 0);
}

TEST(a_few_dead_jobs_among_many_are_no_failing_group)
{
    for (unsigned i = 0; i < 1000; i++)
        outcomes_add(&outcomes, i % 3 == 0, ++now);
    ck_assert(!outcomes_failing(&outcomes));
}

const struct suite suite = {.setup = setup};
