/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job-save.h"
#include "supervisor/job/outcomes.h"
#include "supervisor/succession/record.h"
#include "tests/unit/succession/memory-saver.h"
#include "tests/unit/suite.h"

static struct job_table table;
static struct memory_saver saver;
static struct job *job;

static void setup(void)
{
    ck_assert_int_eq(job_table_init(&table), 0);
    ck_assert_int_eq(job_new(&table, "", &job), 0);
    memory_saver_init(&saver);
}

static void teardown(void)
{
    if (!job_ended(job))
        job_set_state(job, JOB_CANCELLED);
    job_unref(&table, job);
    job_table_deinit(&table);
    memory_saver_deinit(&saver);
}

/* What the next supervisor knows of the job by its other row. */
static void forget_rest(void)
{
    job->n_attempts = 0;
    job->put_off = job->crashed = false;
    job->cause = PROTOCOL_CAUSE_NONE;
    job->canceller = 0;
    job->n_unbegun = 0;
    job->state_sequence = 0;
}

static void restore(int expected)
{
    struct saved_reader row = memory_saver_read(&saver, 0, JOB_ROW);

    ck_assert_int_eq(job_restore_row(&table, &row), expected);
}

static void note_attempts(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        job->attempt++;
        job_note_attempt(job, "shop/0", "signal", "killed by SIGSEGV");
    }
}

TEST(a_job_keeps_what_its_row_does_not_have)
{
    note_attempts(3);
    job->put_off = job->crashed = true;
    job->crash = DEATH_OOM;
    job->n_unbegun = 2;
    job->state_sequence = 9;
    job->restored = true; /* it has no other row */
    job->cause = PROTOCOL_CAUSE_WITHDRAWN;
    job->canceller = 7;
    ck_assert_int_eq(job_save(job, &saver.saver), 0);
    forget_rest();
    restore(0);
    ck_assert_uint_eq(job->cause, PROTOCOL_CAUSE_WITHDRAWN);
    ck_assert_uint_eq(job->canceller, 7);
    ck_assert(job->put_off && job->crashed);
    ck_assert_uint_eq(job->crash, DEATH_OOM);
    ck_assert_uint_eq(job->n_unbegun, 2);
    ck_assert_uint_eq(job->state_sequence, 9);
    ck_assert_uint_eq(job->n_attempts, 3);
    ck_assert_uint_eq(job->attempts[2].number, 3);
    ck_assert_uint_gt(job->attempts[2].at, 0);
    ck_assert_str_eq(job->attempts[2].worker, "shop/0");
    ck_assert_str_eq(job->attempts[2].cause, "signal");
    ck_assert_str_eq(job->attempts[2].detail, "killed by SIGSEGV");
}

TEST(attempts_that_have_failed_since_come_behind)
{
    note_attempts(6);
    ck_assert_int_eq(job_save(job, &saver.saver), 0);
    forget_rest();
    note_attempts(3);
    restore(0);
    ck_assert_uint_eq(job->n_attempts, JOB_ATTEMPTS_KEPT);
    ck_assert_uint_eq(job->attempts[0].number, 1);
    ck_assert_uint_eq(job->attempts[7].number, 9);
}

TEST(a_job_of_which_there_is_no_more_to_tell_takes_no_row)
{
    ck_assert_int_eq(job_save(job, &saver.saver), 0);
    ck_assert_uint_eq(saver.n_rows, 0);
}

TEST(a_row_of_a_job_that_is_gone_is_skipped)
{
    note_attempts(1);
    job->handle++;
    ck_assert_int_eq(job_save(job, &saver.saver), 0);
    job->handle--;
    forget_rest();
    restore(0);
    ck_assert_uint_eq(job->n_attempts, 0);
}

static void restore_damaged(void *userdata, struct saved_reader *row)
{
    (void)job_restore_row(&table, row);
    ck_assert_uint_le(job->n_attempts, JOB_ATTEMPTS_KEPT);
}

TEST(damaged_rows_do_no_harm)
{
    note_attempts(2);
    ck_assert_int_eq(job_save(job, &saver.saver), 0);
    memory_saver_damage(&saver, 0, restore_damaged, NULL);
    saver.rows[0].fields[8] = 2; /* a flag */
    restore(-EBADMSG);
}

static void restore_outcomes(struct saved_reader *row, struct outcomes *ret)
{
    record_get(row, &OUTCOMES_RECORD, ret);
    ck_assert_uint_le(ret->n, OUTCOMES_MAX);
    ck_assert_uint_lt(ret->next, OUTCOMES_MAX);
}

TEST(outcomes_are_restored)
{
    static const unsigned counts[] = {0, 1, 30, OUTCOMES_MAX, 1700};

    for (size_t i = 0; i < ELEMENTS(counts); i++) {
        struct outcomes outcomes = {0}, restored;
        struct saved_writer writer = {0};
        struct saved_reader row;
        unsigned n, n_restored;

        for (unsigned k = 0; k < counts[i]; k++)
            outcomes_add(&outcomes, k % 3 == 0, k + 1);
        record_put(&writer, &OUTCOMES_RECORD, &outcomes);
        ck_assert_int_eq(saved_add(&saver.saver, "outcomes", &writer, NULL), 0);
        row = memory_saver_read(&saver, i, "outcomes");
        restore_outcomes(&row, &restored);
        for (unsigned k = 0; k < 1500; k++) {
            ck_assert_uint_eq(outcomes_count_dead(&restored, &n_restored),
                              outcomes_count_dead(&outcomes, &n));
            ck_assert_uint_eq(n_restored, n);
            ck_assert(outcomes_failing(&restored) == outcomes_failing(&outcomes));
            ck_assert_uint_eq(restored.since, outcomes.since);
            outcomes_add(&outcomes, k % 7 == 0, k + 1);
            outcomes_add(&restored, k % 7 == 0, k + 1);
        }
    }
}

const struct suite suite = {.name = "job-save", .setup = setup, .teardown = teardown};
