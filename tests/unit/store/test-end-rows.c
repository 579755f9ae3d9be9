/* SPDX-License-Identifier: MIT */
#include "supervisor/store/database.h"
#include "supervisor/store/dead-rows.h"
#include "supervisor/store/ended-rows.h"
#include "supervisor/store/job-rows.h"
#include "tests/unit/store/scratch.h"
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

#define ck_text(row, expected, field)                                                              \
    do {                                                                                           \
        ck_assert_uint_eq((row)->field##_size, (expected)->field##_size);                          \
        if ((row)->field##_size > 0)                                                               \
            ck_assert_mem_eq((row)->field, (expected)->field, (row)->field##_size);                \
    } while (0)

static int compare_ended(void *userdata, const struct ended_row *row)
{
    const struct ended_row *expected = userdata;

    ck_assert_int_eq(row->number, expected->number);
    ck_text(row, expected, group);
    ck_text(row, expected, key);
    ck_text(row, expected, name);
    ck_text(row, expected, reason);
    ck_text(row, expected, result);
    ck_assert_uint_eq(row->state, expected->state);
    ck_assert_uint_eq(row->priority, expected->priority);
    ck_assert_uint_eq(row->cause, expected->cause);
    ck_assert_int_eq(row->moved, expected->moved);
    ck_assert_int_eq(row->code, expected->code);
    ck_assert_uint_eq(row->attempt, expected->attempt);
    ck_assert_uint_eq(row->n_failed, expected->n_failed);
    ck_assert_uint_eq(row->max_retries, expected->max_retries);
    ck_assert_uint_eq(row->submitter_uid, expected->submitter_uid);
    ck_assert_uint_eq(row->created_at, expected->created_at);
    ck_assert_uint_eq(row->started_at, expected->started_at);
    ck_assert_uint_eq(row->ended_at, expected->ended_at);
    return 0;
}

TEST(a_kept_result_is_read_as_it_was_written)
{
    struct ended_row row = {
        .number = 5,
        .group = "mail",
        .group_size = 4,
        .key = "acme",
        .key_size = 4,
        .name = "x",
        .name_size = 1,
        .reason = "why",
        .reason_size = 3,
        .state = 4,
        .priority = 2,
        .cause = PROTOCOL_CAUSE_PAYLOAD_LOST,
        .moved = true,
        .code = -7,
        .attempt = 3,
        .n_failed = 2,
        .max_retries = 6,
        .submitter_uid = UINT32_MAX - 1,
        .created_at = 10,
        .started_at = 11,
        .ended_at = 12,
        .result = "a\0b",
        .result_size = 3,
        .result_fd = -1,
    };

    ck_assert_int_eq(ended_rows_put(&database, &row), 0);
    ck_assert_int_eq(ended_rows_put(&database, &row), 0);
    ck_assert_int_eq(ended_rows_fetch(&database, 5, compare_ended, &row), 0);
    ck_assert_int_eq(ended_rows_remove(&database, 5), 0);
    ck_assert_int_eq(ended_rows_remove(&database, 5), 0);
    ck_assert_int_eq(ended_rows_fetch(&database, 5, compare_ended, &row), ENDED_ROWS_E_MISSING);
}

static struct ended_row ended(int64_t number, usec_t at, const char *name)
{
    struct ended_row row = ENDED_ROW_NULL;

    row.number = number;
    row.group = "g";
    row.group_size = 1;
    row.name = name;
    row.name_size = (uint32_t)strlen(name);
    row.ended_at = at;
    return row;
}

TEST(a_kept_result_keeps_its_name_taken)
{
    const struct ended_row kept = ended(1, 1, "x");
    struct job_row job = JOB_ROW_NULL;

    job.number = 2;
    job.group = "g";
    job.group_size = 1;
    job.name = "x";
    job.name_size = 1;
    ck_assert_int_eq(ended_rows_put(&database, &kept), 0);
    ck_assert_int_eq(job_rows_add(&database, &job), JOB_ROWS_E_EXISTS);
    ck_assert_int_eq(ended_rows_remove(&database, 1), 0);
    ck_assert_int_eq(job_rows_add(&database, &job), 0);
}

struct numbers {
    int64_t numbers[8];
    size_t n;
    const void *last; /* payload */
};

static int collect_ended(void *userdata, const struct ended_row *row)
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
        const struct ended_row row = ended(i + 1, times[i], "");

        ck_assert_int_eq(ended_rows_put(&database, &row), 0);
    }
    ck_assert_int_eq(ended_rows_scan(&database, 0, 0, 2, collect_ended, &found), 0);
    ck_assert_int_eq(ended_rows_scan(&database, 2, 3, 8, collect_ended, &found), 0);
    ck_assert_uint_eq(found.n, 4);
    ck_assert_int_eq(found.numbers[0], 2);
    ck_assert_int_eq(found.numbers[1], 3);
    ck_assert_int_eq(found.numbers[2], 4);
    ck_assert_int_eq(found.numbers[3], 1);
}

static int compare_dead(void *userdata, const struct dead_row *row)
{
    const struct dead_row *expected = userdata;

    ck_assert_int_eq(row->number, expected->number);
    ck_assert_uint_eq(row->letter, expected->letter);
    ck_text(row, expected, group);
    ck_text(row, expected, key);
    ck_text(row, expected, name);
    ck_text(row, expected, reason);
    ck_text(row, expected, payload);
    ck_assert_int_eq(row->code, expected->code);
    ck_assert_uint_eq(row->attempts, expected->attempts);
    ck_assert_int_eq(row->cause, expected->cause);
    ck_assert_uint_eq(row->submitter_uid, expected->submitter_uid);
    ck_assert_uint_eq(row->created_at, expected->created_at);
    ck_assert_uint_eq(row->dead_at, expected->dead_at);
    ck_assert_uint_eq(row->asked.max_retries, expected->asked.max_retries);
    ck_assert_uint_eq(row->asked.timeout, expected->asked.timeout);
    ck_assert_uint_eq(row->asked.backoff_min, expected->asked.backoff_min);
    ck_assert_uint_eq(row->asked.backoff_max, expected->asked.backoff_max);
    ck_assert_uint_eq(row->asked.priority, expected->asked.priority);
    return 1;
}

TEST(a_dead_letter_is_read_as_it_was_written)
{
    struct dead_row row = {
        .number = 5,
        .letter = 77,
        .group = "mail",
        .group_size = 4,
        .key = "acme",
        .key_size = 4,
        .name = "x",
        .name_size = 1,
        .reason = "why",
        .reason_size = 3,
        .code = -7,
        .attempts = 3,
        .cause = ATTEMPT_CAUSE_OOM,
        .submitter_uid = 1000,
        .created_at = 10,
        .dead_at = 12,
        .asked = {1, 2, 3, 4, 5},
        .payload = "a\0b",
        .payload_size = 3,
        .payload_fd = -1,
    };

    ck_assert_int_eq(dead_rows_put(&database, &row), 0);
    ck_assert_int_eq(dead_rows_scan(&database, compare_dead, &row), 1);
    ck_assert_int_eq(dead_rows_remove(&database, 5), 0);
    ck_assert_int_eq(dead_rows_scan(&database, compare_dead, &row), 0);
}

static int collect_dead(void *userdata, const struct dead_row *row)
{
    struct numbers *numbers = userdata;

    numbers->numbers[numbers->n++] = row->number;
    return 0;
}

TEST(dead_letters_come_in_the_order_of_their_ids)
{
    struct dead_row row = DEAD_ROW_NULL;
    struct numbers found = {0};

    row.group = "g";
    row.group_size = 1;
    for (row.number = 1; row.number <= 3; row.number++) {
        row.letter = 10 - (uint64_t)row.number;
        ck_assert_int_eq(dead_rows_put(&database, &row), 0);
    }
    ck_assert_int_eq(dead_rows_scan(&database, collect_dead, &found), 0);
    ck_assert_uint_eq(found.n, 3);
    ck_assert_int_eq(found.numbers[0], 3);
    ck_assert_int_eq(found.numbers[2], 1);
}

const struct suite suite = {.name = "end-rows", .setup = setup, .teardown = teardown};
