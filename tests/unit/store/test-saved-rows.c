/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/payload.h"
#include "supervisor/store/saved-rows.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"
#include <errno.h>
#include <stdlib.h>

static struct database database = DATABASE_NULL;
static struct scratch scratch;
static unsigned n_read;

static void setup(void)
{
    scratch_init(&scratch);
    ck_assert_msg(database_open(&database, scratch.path, NULL) == 0, "%s", database.problem);
    n_read = 0;
}

static void teardown(void)
{
    database_close(&database, false);
    scratch_deinit(&scratch);
}

static void add(const char *kind, uint64_t number)
{
    struct payload payload = PAYLOAD_NULL;
    struct saved_writer row = {0};

    ck_assert_int_eq(payload_set(&payload, "data", 4), 0);
    saved_put_number(&row, number);
    ck_assert_int_eq(saved_rows_add(&database, kind, &row, number == 2 ? NULL : &payload), 0);
    payload_deinit(&payload);
    free(row.bytes);
}

static int read_row(void *userdata, struct saved_reader *row)
{
    const uint64_t number = saved_get_number(row);

    (void)userdata;
    ck_assert_uint_eq(number, ++n_read);
    ck_assert_uint_eq(row->payload_size, number == 2 ? 0 : 4);
    ck_assert_mem_eq(row->payload, "data", row->payload_size);
    return number == 3 ? -EBADMSG : 0;
}

START_TEST(rows_of_a_kind_are_read_in_their_order_and_those_refused_are_counted)
{
    uint64_t n_refused = 0;

    ck_assert_int_eq(saved_rows_create(&database), 0);
    add("one", 1);
    add("other", 7);
    add("one", 2);
    add("one", 3);
    add("one", 4);
    ck_assert_int_eq(saved_rows_scan(&database, "one", read_row, NULL, &n_refused), 0);
    ck_assert_uint_eq(n_read, 4);
    ck_assert_uint_eq(n_refused, 1);
}
END_TEST

START_TEST(a_version_that_had_no_such_rows_has_none)
{
    uint64_t n_refused = 0;

    ck_assert_int_eq(saved_rows_create(&database), 0);
    ck_assert_int_eq(saved_rows_create(&database), 0); /* idempotent */
    ck_assert_int_eq(saved_rows_scan(&database, "one", read_row, NULL, &n_refused), 0);
    ck_assert_uint_eq(n_read, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        rows_of_a_kind_are_read_in_their_order_and_those_refused_are_counted,
        a_version_that_had_no_such_rows_has_none,
    };

    return suite_run("saved-rows", setup, teardown, tests, ELEMENTS(tests));
}
