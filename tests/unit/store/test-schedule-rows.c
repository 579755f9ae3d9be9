/* SPDX-License-Identifier: MIT */
#include "supervisor/store/schedule-rows.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"

static const struct schedule_row SOME = {
    .reached = 1795305600,
    .seen = 1795305600,
    .firing = 1795305601,
    .paused_at = 5,
    .failures = 3,
    .pause = 2,
    .counts = {1, 2, 3, 4, 5},
    .last = {INT64_C(1795305600) << 16, 7},
    .skips = {0, 9},
};

static unsigned n_found;

static int check(void *userdata, const char *name, const void *row)
{
    ck_assert_str_eq(name, userdata);
    ck_assert_mem_eq(row, &SOME, sizeof(SOME));
    n_found++;
    return 0;
}

TEST(a_row_comes_back_as_it_was_written_until_it_is_removed)
{
    struct database database = DATABASE_NULL;
    struct scratch scratch;
    char name[] = "nightly";

    n_found = 0;
    scratch_init(&scratch);
    ck_assert_int_eq(database_open(&database, scratch.path, NULL), 0);
    database_begin(&database);
    ck_assert_int_eq(setting_rows_put(&database, &SCHEDULE_ROWS, name, &SOME), 0);
    ck_assert_int_eq(setting_rows_put(&database, &SCHEDULE_ROWS, name, &SOME), 0);
    ck_assert_int_eq(database_commit(&database), 0);
    database_close(&database, false);
    ck_assert_int_eq(database_open(&database, scratch.path, NULL), 0);
    ck_assert_int_eq(setting_rows_scan(&database, &SCHEDULE_ROWS, check, name), 0);
    ck_assert_uint_eq(n_found, 1);
    database_begin(&database);
    ck_assert_int_eq(setting_rows_put(&database, &SCHEDULE_ROWS, name, NULL), 0);
    ck_assert_int_eq(setting_rows_put(&database, &SCHEDULE_ROWS, name, NULL), 0);
    ck_assert_int_eq(database_commit(&database), 0);
    ck_assert_int_eq(setting_rows_scan(&database, &SCHEDULE_ROWS, check, name), 0);
    ck_assert_uint_eq(n_found, 1);
    database_close(&database, false);
    scratch_deinit(&scratch);
}

const struct suite suite = {0};
