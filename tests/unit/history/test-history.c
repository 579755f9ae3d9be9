/* SPDX-License-Identifier: MIT */
#include "supervisor/history/history.h"
#include "tests/unit/fixture.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"

static struct scratch scratch;
static struct loop *loop;
static struct job_table table;
static struct history *history;

static void setup(void)
{
    const struct history_options options = {.path = scratch.path};

    loop = new_loop();
    scratch_init(&scratch);
    ck_assert_int_eq(job_table_init(&table), 0);
    ck_assert_int_eq(history_new(&history, loop, &options), 0);
}

static void teardown(void)
{
    history_free(history);
    job_table_deinit(&table);
    scratch_deinit(&scratch);
    loop_free(loop);
}

const struct suite suite = {.setup = setup, .teardown = teardown};

/* Ends a job of the user with this reason. Returns whether its row was dropped. */
static bool drops(uid_t uid, const char *group, const char *reason)
{
    const uint64_t before = history_stats(history).n_dropped;
    struct job *job;

    ck_assert_int_eq(job_new(&table, "", &job), 0);
    job->submitter_uid = uid;
    job_set_state(job, JOB_RUNNING);
    history_note(history, job, group, NULL, false);
    job_set_reason(job, reason);
    job_set_state(job, JOB_REJECTED);
    history_add(history, job);
    job_let_go(&table, job);
    return history_stats(history).n_dropped > before;
}

/* The loop does not run, so all rows wait. */
TEST(a_users_flood_displaces_only_its_own_rows)
{
    static char reason[8 << 10];

    memset(reason, 'x', sizeof(reason) - 1);
    for (unsigned n = 0; !drops(1, "a", reason); n++)
        ck_assert_uint_lt(n, 100000);
    ck_assert(!drops(2, "a", reason));
    ck_assert(!drops(1, "b", reason));
    ck_assert(drops(1, "a", reason));
}
