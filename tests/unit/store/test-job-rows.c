/* SPDX-License-Identifier: MIT */
#include "supervisor/store/database.h"
#include "supervisor/store/job-number.h"
#include "supervisor/store/job-rows.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"
#include <sys/mman.h>

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

static struct job_row named(int64_t number, const char *name)
{
    struct job_row row = JOB_ROW_NULL;

    row.number = number;
    row.group = "mail";
    row.group_size = 4;
    row.name = name;
    row.name_size = (uint32_t)strlen(name);
    row.payload = "hello";
    row.payload_size = 5;
    return row;
}

static int add(int64_t number, const char *name)
{
    const struct job_row row = named(number, name);

    return job_rows_add(&database, &row);
}

/* All fields but the payload's descriptor. */
static int compare(void *userdata, const struct job_row *row)
{
    const struct job_row *expected = userdata;

    ck_assert_int_eq(row->number, expected->number);
    ck_assert_mem_eq(row->group, expected->group, expected->group_size);
    ck_assert_uint_eq(row->group_size, expected->group_size);
    ck_assert_uint_eq(row->key_size, expected->key_size);
    if (row->key_size > 0)
        ck_assert_mem_eq(row->key, expected->key, expected->key_size);
    ck_assert_uint_eq(row->name_size, expected->name_size);
    ck_assert_uint_eq(row->priority, expected->priority);
    ck_assert_uint_eq(row->asked.max_retries, expected->asked.max_retries);
    ck_assert_uint_eq(row->asked.timeout, expected->asked.timeout);
    ck_assert_uint_eq(row->asked.backoff_min, expected->asked.backoff_min);
    ck_assert_uint_eq(row->asked.backoff_max, expected->asked.backoff_max);
    ck_assert_uint_eq(row->asked.priority, expected->asked.priority);
    ck_assert_uint_eq(row->max_retries, expected->max_retries);
    ck_assert_uint_eq(row->submitter_uid, expected->submitter_uid);
    ck_assert_int_eq(row->keep_result, expected->keep_result);
    ck_assert_int_eq(row->moved, expected->moved);
    ck_assert_uint_eq(row->created_at, expected->created_at);
    ck_assert_uint_eq(row->deadline, expected->deadline);
    ck_assert_uint_eq(row->time_left, expected->time_left);
    ck_assert_uint_eq(row->delay, expected->delay);
    ck_assert_int_eq(row->state, expected->state);
    ck_assert_int_eq(row->cancel, expected->cancel);
    ck_assert_uint_eq(row->canceller, expected->canceller);
    ck_assert_uint_eq(row->attempt, expected->attempt);
    ck_assert_uint_eq(row->n_failed, expected->n_failed);
    ck_assert_uint_eq(row->failed_by, expected->failed_by);
    ck_assert_uint_eq(row->due, expected->due);
    ck_assert_uint_eq(row->started_at, expected->started_at);
    ck_assert_uint_eq(row->payload_size, expected->payload_size);
    if (row->payload && expected->payload)
        ck_assert_mem_eq(row->payload, expected->payload, expected->payload_size);
    return 0;
}

/* Writes and reads it as an upgrade does. */
static void compare_saved(struct job_row expected)
{
    struct job_row row = JOB_ROW_NULL;
    struct saved_writer writer = {0};
    struct saved_reader reader;

    job_row_put(&writer, &expected);
    reader = (struct saved_reader){.at = writer.bytes, .end = writer.bytes + writer.size};
    ck_assert_int_eq(job_row_get(&reader, &row), 0);
    ck_assert(!saved_has_more(&reader));
    row.payload_size = expected.payload_size;
    expected.payload = NULL;
    ck_assert_int_eq(compare(&expected, &row), 0);
    for (size_t size = 0; size < writer.size; size++) { /* whatever is cut off */
        reader = (struct saved_reader){.at = writer.bytes, .end = writer.bytes + size};
        (void)job_row_get(&reader, &row);
    }
    reader = (struct saved_reader){.at = writer.bytes, .end = writer.bytes + writer.size - 1};
    ck_assert_int_eq(job_row_get(&reader, &row), -EBADMSG);
    free(writer.bytes);
}

TEST(a_row_is_read_as_it_was_written)
{
    struct job_row row = {
        .number = INT64_C(1) << 50,
        .group = "mail",
        .group_size = 4,
        .key = "acme",
        .key_size = 4,
        .priority = 63,
        .asked = {.max_retries = 0, .timeout = USEC_INFINITY, .backoff_min = 1, .backoff_max = 2},
        .max_retries = 7,
        .submitter_uid = UINT32_MAX - 1,
        .keep_result = true,
        .moved = true,
        .created_at = 1700000000000000,
        .deadline = USEC_INFINITY - 1,
        .time_left = USEC_INFINITY - 2,
        .delay = 17,
        .state = JOB_ROW_BACKOFF,
        .cancel = PROTOCOL_CAUSE_WITHDRAWN,
        .canceller = UINT32_MAX - 1,
        .attempt = UINT32_MAX,
        .n_failed = 3,
        .failed_by = ATTEMPT_CAUSE_SUPERVISOR,
        .due = 1800000000000000,
        .started_at = 1700000000000001,
        .payload = "a\0b",
        .payload_size = 3,
        .payload_fd = -1,
    };

    ck_assert_int_eq(job_rows_add(&database, &row), 0);
    ck_assert_int_eq(job_rows_fetch(&database, row.number, compare, &row), 0);
    row.payload = NULL;
    ck_assert_int_eq(job_rows_scan(&database, 0, 10, compare, &row), 0);
    compare_saved(row);
}

TEST(an_empty_row_is_read_as_it_was_written)
{
    struct job_row row = JOB_ROW_NULL;

    row.number = 1;
    row.group = "g";
    row.group_size = 1;
    ck_assert_int_eq(job_rows_add(&database, &row), 0);
    ck_assert_int_eq(job_rows_fetch(&database, 1, compare, &row), 0);
    compare_saved(row);
}

TEST(an_update_changes_the_progress_only)
{
    struct job_row row = named(1, "x"), change = JOB_ROW_NULL;

    ck_assert_int_eq(job_rows_add(&database, &row), 0);
    change.number = row.number = 1;
    change.state = row.state = JOB_ROW_RUNNING;
    change.cancel = row.cancel = PROTOCOL_CAUSE_DEADLINE;
    change.canceller = row.canceller = 0;
    change.attempt = row.attempt = 2;
    change.n_failed = row.n_failed = 1;
    change.due = row.due = 5;
    change.started_at = row.started_at = 6;
    change.failed_by = row.failed_by = ATTEMPT_CAUSE_SIGNAL;
    ck_assert_int_eq(job_rows_update(&database, &change), 0);
    ck_assert_int_eq(job_rows_fetch(&database, 1, compare, &row), 0);
    change.number = 2;
    ck_assert_int_eq(job_rows_update(&database, &change), 0);
    ck_assert_int_eq(job_rows_fetch(&database, 2, compare, &row), JOB_ROWS_E_MISSING);
}

TEST(a_job_that_moves_has_the_row_of_another_group)
{
    struct job_row row = named(1, "x"), other = named(2, "y");

    ck_assert_int_eq(job_rows_add(&database, &row), 0);
    ck_assert_int_eq(job_rows_add(&database, &other), 0);
    row.group = "letters";
    row.group_size = 7;
    row.moved = true;
    ck_assert_int_eq(job_rows_move(&database, &row), 0);
    ck_assert_int_eq(job_rows_fetch(&database, 1, compare, &row), 0);
    ck_assert_int_eq(job_rows_fetch(&database, 2, compare, &other), 0);
    row.number = 3;
    ck_assert_int_eq(job_rows_move(&database, &row), 0);
}

TEST(a_blob_is_written_from_its_file)
{
    struct job_row row = named(1, "");
    static const char data[100000] = "blob";

    row.payload_fd = memfd_create("blob", MFD_CLOEXEC);
    ck_assert_int_eq(write(row.payload_fd, data, sizeof(data)), sizeof(data));
    row.payload = NULL;
    row.payload_size = sizeof(data);
    ck_assert_int_eq(job_rows_add(&database, &row), 0);
    close_fd(row.payload_fd);
    row.payload = data;
    ck_assert_int_eq(job_rows_fetch(&database, 1, compare, &row), 0);
}

TEST(a_name_is_unique_until_its_row_is_removed)
{
    int64_t number;

    ck_assert_int_eq(add(1, "x"), 0);
    ck_assert_int_eq(add(2, "x"), JOB_ROWS_E_EXISTS);
    ck_assert_int_eq(add(3, ""), 0);
    ck_assert_int_eq(add(4, ""), 0);
    ck_assert_int_eq(job_rows_find(&database, "x", 1, &number), 0);
    ck_assert_int_eq(number, 1);
    ck_assert_int_eq(job_rows_remove(&database, 1), 0);
    ck_assert_int_eq(job_rows_remove(&database, 1), 0);
    ck_assert_int_eq(job_rows_find(&database, "x", 1, &number), JOB_ROWS_E_MISSING);
    ck_assert_int_eq(add(2, "x"), 0);
}

struct numbers {
    int64_t numbers[8];
    size_t n;
};

static int collect(void *userdata, const struct job_row *row)
{
    struct numbers *numbers = userdata;

    numbers->numbers[numbers->n++] = row->number;
    return numbers->n == 8;
}

TEST(a_scan_goes_on_behind_a_number)
{
    struct numbers found = {0};

    for (int64_t i = 1; i <= 6; i++)
        ck_assert_int_eq(add(7 - i, ""), 0);
    ck_assert_int_eq(job_rows_scan(&database, 2, 3, collect, &found), 0);
    ck_assert_uint_eq(found.n, 3);
    ck_assert_int_eq(found.numbers[0], 3);
    ck_assert_int_eq(found.numbers[2], 5);
    ck_assert_int_eq(job_rows_scan(&database, 5, 3, collect, &found), 0);
    ck_assert_uint_eq(found.n, 4);
    ck_assert_int_eq(found.numbers[3], 6);
}

TEST(a_number_is_found_in_the_id_that_was_made_from_it)
{
    struct protocol_id id = job_number_to_id(77, job_number_first(3));
    char text[PROTOCOL_ID_TEXT];

    ck_assert_int_eq(job_number_of_id(77, &id), job_number_first(3));
    ck_assert_int_eq(job_number_of_id(78, &id), 0);
    ck_assert_int_eq(protocol_id_parse(&id, protocol_id_format(&id, text)), 0);
    ck_assert_int_eq(job_number_of_id(77, &id), job_number_first(3));
    id.high++;
    ck_assert_int_eq(job_number_of_id(77, &id), 0);
}

const struct suite suite = {.name = "job-rows", .setup = setup, .teardown = teardown};
