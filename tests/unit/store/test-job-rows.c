/* SPDX-License-Identifier: MIT */
#include "supervisor/event/death.h"
#include "supervisor/store/database.h"
#include "supervisor/store/job-number.h"
#include "supervisor/store/job-rows.h"
#include "supervisor/store/pieces.h"
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

    odd_compare(&JOB_ROW_RECORD, MEDIUM_DISK, expected, row);
    ck_assert_uint_eq(row->payload_size, expected->payload_size);
    if (row->payload && expected->payload)
        ck_assert_mem_eq(row->payload, expected->payload, expected->payload_size);
    return 0;
}

/* Another run opens the database; `first`: after everything has died, or was stopped. */
static void reopen(bool first, bool stopped)
{
    static uint8_t opened;

    ck_assert_int_eq(database_commit(&database), 0);
    if (stopped)
        database_end_run(&database);
    database_close(&database, false);
    opened = !first;
    database.opened = &opened;
    ck_assert_msg(database_open(&database, scratch.path, NULL) == 0, "%s", database.problem);
    database_begin(&database);
}

static int copy(void *userdata, const struct job_row *row)
{
    *(struct job_row *)userdata = *row;
    return 0;
}

static void assert_attempt(int64_t number, enum job_row_state state, uint32_t attempt,
                           uint32_t allowed)
{
    struct job_row row;

    ck_assert_int_eq(job_rows_fetch(&database, number, copy, &row), 0);
    ck_assert_uint_eq(row.state, state);
    ck_assert_uint_eq(row.attempt, attempt);
    ck_assert_uint_eq(job_row_allows(&row), allowed);
}

TEST(D4_attempts_that_may_have_begun_are_counted_when_everything_has_died)
{
    struct job_row waiting = named(1, "waiting"), running = named(2, "running"),
                   handed = named(3, "handed");

    waiting.attempt = running.attempt = handed.attempt = 4;
    running.state = JOB_ROW_RUNNING;
    handed.state = JOB_ROW_HANDED;
    ck_assert_int_eq(job_rows_add(&database, &waiting), 0);
    ck_assert_int_eq(job_rows_add(&database, &running), 0);
    ck_assert_int_eq(job_rows_add(&database, &handed), 0);
    for (unsigned kind = 0; kind < 2; kind++) {
        reopen(kind == 0, kind == 0); /* stopped, or another process continues */
        assert_attempt(1, JOB_ROW_WAITING, 4, 5);
        assert_attempt(2, JOB_ROW_RUNNING, 4, 4);
        assert_attempt(3, JOB_ROW_WAITING, 3, 4);
    }
    reopen(true, false);
    assert_attempt(1, JOB_ROW_WAITING, 5, 6);
    assert_attempt(2, JOB_ROW_RUNNING, 4, 4);
    assert_attempt(3, JOB_ROW_RUNNING, 4, 4);
    reopen(true, false);
    assert_attempt(1, JOB_ROW_WAITING, 6, 6);
    ck_assert_int_eq(job_rows_update(&database, &waiting), 0);
    assert_attempt(1, JOB_ROW_WAITING, 4, 5);
}

TEST(D4_a_change_of_a_job_does_not_write_its_large_payload_again)
{
    static char data[1 << 20];
    struct payload payload = PAYLOAD_NULL;
    struct job_row row = named(1, "large");
    int pages;

    memset(data, 'x', sizeof(data));
    ck_assert_int_eq(payload_set(&payload, data, sizeof(data)), 0);
    row.payload = data;
    row.payload_size = sizeof(data);
    ck_assert_int_eq(pieces_write(&database, 1, PIECES_PAYLOAD, &payload), 0);
    ck_assert_int_eq(job_rows_add(&database, &row), 0);
    ck_assert_int_eq(database_commit(&database), 0);
    pages = database.log_pages;
    ck_assert_int_gt(pages, 256);
    database_begin(&database);
    row.state = JOB_ROW_BACKOFF;
    row.due = row.delay = 1000000;
    ck_assert_int_eq(job_rows_update(&database, &row), 0);
    ck_assert_int_eq(database_commit(&database), 0);
    ck_assert_int_lt(database.log_pages - pages, 10);
    database_begin(&database);
    ck_assert_int_eq(job_rows_fetch(&database, 1, compare, &row), 0);
    row.payload = NULL;
    ck_assert_int_eq(job_rows_scan(&database, 0, false, 10, compare, &row), 0);
    payload_deinit(&payload);
}

/* Values that no code would choose, within the bounds that are checked. */
static struct job_row odd_row(unsigned seed)
{
    struct job_row row = JOB_ROW_NULL;

    odd_fill(&JOB_ROW_RECORD, MEDIUM_DISK, &row, seed);
    row.number = 7;
    row.asked = (struct job_options){.max_retries = seed, .backoff_min = 1, .backoff_max = 2};
    row.cause = PROTOCOL_CAUSE_WITHDRAWN;
    row.failed_by = ATTEMPT_CAUSE_SUPERVISOR;
    row.payload = "a\0b";
    row.payload_size = 3;
    return row;
}

TEST(a_row_is_read_as_it_was_written)
{
    struct job_row row = odd_row(1);

    ck_assert_int_eq(job_rows_add(&database, &row), 0);
    ck_assert_int_eq(job_rows_fetch(&database, row.number, compare, &row), 0);
    row.payload = NULL;
    ck_assert_int_eq(job_rows_scan(&database, 0, false, 10, compare, &row), 0);
}

TEST(an_empty_row_is_read_as_it_was_written)
{
    struct job_row row = JOB_ROW_NULL;

    row.number = 1;
    row.group = "g";
    row.group_size = 1;
    ck_assert_int_eq(job_rows_add(&database, &row), 0);
    ck_assert_int_eq(job_rows_fetch(&database, 1, compare, &row), 0);
}

TEST(an_update_changes_the_facts_the_state_and_the_dates)
{
    struct job_row row = odd_row(1), change = odd_row(2);

    ck_assert_int_eq(job_rows_add(&database, &row), 0);
    row.facts = change.facts;
    row.state = change.state;
    row.due = change.due;
    row.delay = change.delay;
    row.checkpoint_size = change.checkpoint_size;
    ck_assert_int_eq(job_rows_update(&database, &change), 0);
    ck_assert_int_eq(job_rows_fetch(&database, row.number, compare, &row), 0);
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
    row.asked.priority = 5;
    ck_assert_int_eq(job_rows_move(&database, &row), 0);
    ck_assert_int_eq(job_rows_fetch(&database, 1, compare, &row), 0);
    ck_assert_int_eq(job_rows_fetch(&database, 2, compare, &other), 0);
    row.number = 3;
    ck_assert_int_eq(job_rows_move(&database, &row), 0);
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
    ck_assert_int_eq(job_rows_remove(&database, 1u << ROWS_JOB, 1), 0);
    ck_assert_int_eq(job_rows_remove(&database, 1u << ROWS_JOB, 1), 0);
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
    ck_assert_int_eq(job_rows_scan(&database, 2, false, 3, collect, &found), 0);
    ck_assert_uint_eq(found.n, 3);
    ck_assert_int_eq(found.numbers[0], 3);
    ck_assert_int_eq(found.numbers[2], 5);
    ck_assert_int_eq(job_rows_scan(&database, 5, false, 3, collect, &found), 0);
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

const struct suite suite = {.setup = setup, .teardown = teardown};
