/* SPDX-License-Identifier: MIT */
#include "shared/base/unitfile.h"
#include "supervisor/event/death.h"
#include "supervisor/store/database.h"
#include "supervisor/store/job-rows.h"
#include "supervisor/store/schema.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"
#include <ctype.h>
#include <errno.h>

static const char MANUAL[] = "supervisor/store/troupe.db.5";

/* Asserts that a line of the manual begins with the macro and has the word. */
static void assert_in_manual(const char *manual, const char *macro, const char *word)
{
    const size_t size = strlen(word);

    for (const char *line = strstr(manual, macro); line; line = strstr(line + 1, macro)) {
        const char *found = strstr(line, word);

        if (found && found < line + strcspn(line + 1, "\n") + 1 && found[-1] == ' ' &&
            isspace((unsigned char)found[size]))
            return;
    }
    ck_abort_msg("%s lacks %s%s (tests are run from the top of the tree)", MANUAL, macro, word);
}

TEST(the_manual_tells_of_every_table_and_column)
{
    static const char sql[] = "SELECT t.name, c.name FROM sqlite_schema t,"
                              " pragma_table_info(t.name) c WHERE t.type = 'table'";
    struct database database = DATABASE_NULL;
    struct scratch scratch;
    char *manual;
    size_t size;

    ck_assert_int_eq(unitfile_read(MANUAL, &manual, &size), 0);
    manual = realloc(manual, size + 1);
    ck_assert_ptr_nonnull(manual);
    manual[size] = '\0';
    scratch_init(&scratch);
    ck_assert_int_eq(database_open(&database, scratch.path, NULL), 0);
    sqlite3_stmt *query = database_query(&database, sql);
    while (database_step(&database, query) == DATABASE_E_ROW) {
        assert_in_manual(manual, "\n.Ss ", (const char *)sqlite3_column_text(query, 0));
        assert_in_manual(manual, "Va ", (const char *)sqlite3_column_text(query, 1));
    }
    database_close(&database, false);
    scratch_deinit(&scratch);
    free(manual);
}

static const char VERSION_6[] = "tests/unit/store/database-6.sql";

static void make_old(const struct scratch *scratch)
{
    sqlite3 *handle = NULL;
    char *sql;
    size_t size;

    ck_assert_int_eq(unitfile_read(VERSION_6, &sql, &size), 0);
    sql = realloc(sql, size + 1);
    ck_assert_ptr_nonnull(sql);
    sql[size] = '\0';
    ck_assert_int_eq(mkdir(scratch->directory, 0700), 0);
    ck_assert_int_eq(sqlite3_open(scratch->path, &handle), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(handle), SQLITE_OK);
    free(sql);
}

static int64_t read_one(struct database *database, const char *sql)
{
    sqlite3_stmt *query = database_query(database, sql);

    ck_assert_int_eq(database_step(database, query), DATABASE_E_ROW);
    int64_t value = sqlite3_column_int64(query, 0);
    (void)sqlite3_reset(query);
    return value;
}

static int check_first(void *userdata, const struct job_row *row)
{
    *(bool *)userdata = true;
    ck_assert_uint_eq(row->key_size, 6);
    ck_assert_mem_eq(row->key, "tenant", 6);
    ck_assert_uint_eq(row->name_size, 5);
    ck_assert_mem_eq(row->name, "first", 5);
    ck_assert_uint_eq(row->priority, 40);
    ck_assert_uint_eq(row->attempt, 2);
    ck_assert_uint_eq(row->n_failed, 2);
    ck_assert_uint_eq(row->max_retries, 5);
    ck_assert_uint_eq(row->submitter_uid, 1000);
    ck_assert_uint_eq(row->due, 1700000009000000);
    ck_assert_uint_eq(row->delay, 0);
    ck_assert_uint_eq(row->failed_by, ATTEMPT_CAUSE_NONE);
    ck_assert_uint_eq(row->payload_size, 5);
    ck_assert_mem_eq(row->payload, "hello", 5);
    return 0;
}

TEST(D14_a_database_of_version_6_is_read)
{
    struct database database = DATABASE_NULL;
    struct scratch scratch;
    uint8_t opened = 0; /* the last run is taken for one that was stopped */
    bool read = false;
    int64_t number;

    database.opened = &opened;
    scratch_init(&scratch);
    make_old(&scratch);
    for (unsigned times = 0; times < 2; times++) {
        ck_assert_msg(database_open(&database, scratch.path, NULL) == 0, "%s", database.problem);
        ck_assert_int_eq(read_one(&database, "PRAGMA user_version"), SCHEMA_VERSION);
        ck_assert_int_eq(read_one(&database, "SELECT unclean FROM store"), 0);
        ck_assert_int_eq(read_one(&database, "SELECT count(*) FROM ended"), 1);
        ck_assert_int_eq(read_one(&database, "SELECT count(*) FROM dead"), 1);
        ck_assert_int_eq(job_rows_find(&database, "first", 5, &number), 0);
        ck_assert_int_eq(number, 281474976710657);
        ck_assert_int_eq(job_rows_fetch(&database, number, check_first, &read), 0);
        ck_assert(read);
        database_close(&database, false);
    }
    scratch_deinit(&scratch);
}

/* Changes the database of version 6. */
static void change_old(const struct scratch *scratch, const char *sql)
{
    sqlite3 *handle;

    ck_assert_int_eq(sqlite3_open(scratch->path, &handle), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(handle), SQLITE_OK);
}

TEST(D14_version_6_with_payloads_in_files_is_refused_and_found_before_an_upgrade)
{
    struct database database = DATABASE_NULL;
    char problem[DATABASE_PROBLEM_MAX];
    struct scratch scratch;

    scratch_init(&scratch);
    make_old(&scratch);
    ck_assert_int_eq(database_check_format(scratch.path, problem), 0);
    change_old(&scratch, "UPDATE job SET payload = 600000 WHERE name = 'first'");
    ck_assert_int_eq(database_check_format(scratch.path, problem), -ENOTSUP);
    ck_assert_ptr_nonnull(strstr(problem, "payloads in files"));
    ck_assert_int_eq(database_open(&database, scratch.path, NULL), -ENOTSUP);
    ck_assert_ptr_nonnull(strstr(database.problem, "payloads in files"));
    change_old(&scratch, "UPDATE job SET payload = x'00' WHERE name = 'first'");
    ck_assert_int_eq(database_open(&database, scratch.path, NULL), 0);
    database_close(&database, false);
    scratch_deinit(&scratch);
}

/* Asserts that a query yields no row. */
static void assert_none(sqlite3 *handle, const char *sql)
{
    sqlite3_stmt *query;

    ck_assert_int_eq(sqlite3_prepare_v2(handle, sql, -1, &query, NULL), SQLITE_OK);
    ck_assert_msg(sqlite3_step(query) == SQLITE_DONE, "%s", sqlite3_column_text(query, 0));
    ck_assert_int_eq(sqlite3_finalize(query), SQLITE_OK);
}

TEST(D14_an_old_database_gets_the_columns_of_a_new_one)
{
    static const char columns[] = "SELECT m.name || '.' || c.name FROM %s.sqlite_schema m,"
                                  " pragma_table_info(m.name, '%s') c WHERE m.type = 'table'"
                                  " EXCEPT SELECT m.name || '.' || c.name FROM %s.sqlite_schema m,"
                                  " pragma_table_info(m.name, '%s') c WHERE m.type = 'table'";
    struct database database = DATABASE_NULL;
    struct scratch scratch;
    char sql[1024];

    scratch_init(&scratch);
    make_old(&scratch);
    ck_assert_msg(database_open(&database, scratch.path, NULL) == 0, "%s", database.problem);
    database_close(&database, false);
    ck_assert_int_eq(sqlite3_open(":memory:", &database.handle), SQLITE_OK);
    ck_assert_int_eq(schema_migrate(database.handle, 0), SQLITE_OK);
    (void)snprintf(sql, sizeof(sql), "ATTACH '%s' AS old", scratch.path);
    ck_assert_int_eq(sqlite3_exec(database.handle, sql, NULL, NULL, NULL), SQLITE_OK);
    (void)snprintf(sql, sizeof(sql), columns, "old", "old", "main", "main");
    assert_none(database.handle, sql);
    (void)snprintf(sql, sizeof(sql), columns, "main", "main", "old", "old");
    assert_none(database.handle, sql);
    ck_assert_int_eq(sqlite3_close(database.handle), SQLITE_OK);
    scratch_deinit(&scratch);
}
