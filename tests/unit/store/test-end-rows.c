/* SPDX-License-Identifier: MIT */
#include "supervisor/event/death.h"
#include "supervisor/store/database.h"
#include "supervisor/store/job-rows.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/succession/odd.h"
#include "tests/unit/suite.h"

static struct database database = DATABASE_NULL;
static struct scratch scratch;

static void setup(void)
{
    scratch_init(&scratch);
    ck_assert_msg(database_open(&database, scratch.path, NULL) == 0, "%s", database.problem);
    database_begin(&database);
}

static void teardown(void)
{
    ck_assert_int_eq(database_commit(&database), 0);
    database_close(&database, false);
    scratch_deinit(&scratch);
}

/* What the disk must keep of a row; the rest is not set. */
static int compare(void *userdata, const struct job_row *row)
{
    const struct job_row *expected = userdata;

    ck_assert_int_eq(row->code, expected->code);
    ck_assert_uint_eq(row->ended_at, expected->ended_at);
    odd_compare(&JOB_ROW_RECORD, MEDIUM_DISK, expected, row);
    ck_assert_uint_eq(row->letter, expected->letter);
    ck_assert_uint_eq(row->reason_size, expected->reason_size);
    ck_assert_mem_eq(row->reason, expected->reason, expected->reason_size);
    ck_assert_uint_eq(row->payload_size, expected->payload_size);
    ck_assert_mem_eq(row->payload, expected->payload, expected->payload_size);
    return 1;
}

static struct job_row row_of(int64_t number, const char *name)
{
    struct job_row row = JOB_ROW_NULL;

    row.number = number;
    row.group = "mail";
    row.group_size = 4;
    row.key = "acme";
    row.key_size = 4;
    row.name = name;
    row.name_size = (uint32_t)strlen(name);
    row.reason = "why";
    row.reason_size = 3;
    row.code = -7;
    row.submitter_uid = UINT32_MAX - 1;
    row.created_at = 10;
    row.ended_at = 12;
    row.payload = "a\0b";
    row.payload_size = 3;
    return row;
}

TEST(a_kept_result_is_read_as_it_was_written)
{
    struct job_row row = row_of(5, "x");

    row.state = 4;
    row.priority = 2;
    row.cause = PROTOCOL_CAUSE_PAYLOAD_LOST;
    row.moved = true;
    row.attempt = 3;
    row.n_failed = 2;
    row.max_retries = 6;
    row.started_at = 11;
    ck_assert_int_eq(job_rows_put(&database, ROWS_ENDED, &row), 0);
    ck_assert_int_eq(job_rows_put(&database, ROWS_ENDED, &row), 0);
    ck_assert_int_eq(job_rows_scan_ends(&database, ROWS_ENDED, 0, 0, 1, compare, &row), 1);
    ck_assert_int_eq(job_rows_remove(&database, 1u << ROWS_ENDED, 5), 0);
    ck_assert_int_eq(job_rows_remove(&database, ROWS_ALL, 5), 0);
    ck_assert_int_eq(job_rows_scan_ends(&database, ROWS_ENDED, 0, 0, 1, compare, &row), 0);
}

TEST(a_kept_result_keeps_its_name_taken)
{
    const struct job_row kept = row_of(1, "x"), job = row_of(2, "x");

    ck_assert_int_eq(job_rows_put(&database, ROWS_ENDED, &kept), 0);
    ck_assert_int_eq(job_rows_check_name(&database, &kept), 0);
    ck_assert_int_eq(job_rows_check_name(&database, &job), JOB_ROWS_E_EXISTS);
    ck_assert_int_eq(job_rows_remove(&database, 1u << ROWS_ENDED, 1), 0);
    ck_assert_int_eq(job_rows_check_name(&database, &job), 0);
}

struct numbers {
    int64_t numbers[8];
    size_t n;
};

static int collect(void *userdata, const struct job_row *row)
{
    struct numbers *numbers = userdata;

    numbers->numbers[numbers->n++] = row->number;
    return 0;
}

TEST(kept_results_come_in_the_order_of_their_ends)
{
    const usec_t times[] = {3, 1, 2, 2};
    struct numbers found = {0};

    for (unsigned i = 0; i < ELEMENTS(times); i++) {
        struct job_row row = row_of(i + 1, "");

        row.ended_at = times[i];
        ck_assert_int_eq(job_rows_put(&database, ROWS_ENDED, &row), 0);
    }
    ck_assert_int_eq(job_rows_scan_ends(&database, ROWS_ENDED, 0, 0, 2, collect, &found), 0);
    ck_assert_int_eq(job_rows_scan_ends(&database, ROWS_ENDED, 2, 3, 8, collect, &found), 0);
    ck_assert_uint_eq(found.n, 4);
    ck_assert_int_eq(found.numbers[0], 2);
    ck_assert_int_eq(found.numbers[1], 3);
    ck_assert_int_eq(found.numbers[2], 4);
    ck_assert_int_eq(found.numbers[3], 1);
}

TEST(a_dead_letter_is_read_as_it_was_written)
{
    struct job_row row = row_of(5, "x");

    row.letter = 77;
    row.n_failed = 3;
    row.failed_by = ATTEMPT_CAUSE_OOM;
    row.asked = (struct job_options){1, 2, 3, 4, 5, 6};
    ck_assert_int_eq(job_rows_put(&database, ROWS_DEAD, &row), 0);
    ck_assert_int_eq(job_rows_scan_ends(&database, ROWS_DEAD, INT64_MIN, 0, 8, compare, &row), 1);
    ck_assert_int_eq(job_rows_remove(&database, 1u << ROWS_DEAD, 5), 0);
    ck_assert_int_eq(job_rows_scan_ends(&database, ROWS_DEAD, INT64_MIN, 0, 8, compare, &row), 0);
}

TEST(dead_letters_come_in_the_order_of_their_ids)
{
    struct job_row row = row_of(1, "");
    struct numbers found = {0};

    for (row.number = 1; row.number <= 3; row.number++) {
        row.letter = 10 - (uint64_t)row.number;
        ck_assert_int_eq(job_rows_put(&database, ROWS_DEAD, &row), 0);
    }
    ck_assert_int_eq(job_rows_scan_ends(&database, ROWS_DEAD, INT64_MIN, 0, 8, collect, &found), 0);
    ck_assert_uint_eq(found.n, 3);
    ck_assert_int_eq(found.numbers[0], 3);
    ck_assert_int_eq(found.numbers[2], 1);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
