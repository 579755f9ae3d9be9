/* SPDX-License-Identifier: MIT */
#include "supervisor/store/database.h"
#include "supervisor/store/job-rows.h"
#include "supervisor/store/schema.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"
#include <sys/file.h>

static struct database database = DATABASE_NULL;
static struct scratch scratch;

static void setup(void)
{
    scratch_init(&scratch);
}

static void teardown(void)
{
    database_close(&database, false);
    scratch_deinit(&scratch);
}

static int open_it(void)
{
    return database_open(&database, scratch.path, NULL);
}

static void add_rows(int64_t first, int64_t last)
{
    static const char payload[1000];
    struct job_row row = JOB_ROW_NULL;

    row.group = "g";
    row.group_size = 1;
    row.payload = payload;
    row.payload_size = sizeof(payload);
    database_begin(&database);
    for (row.number = first; row.number <= last; row.number++)
        ck_assert_int_eq(job_rows_add(&database, &row), 0);
    ck_assert_int_eq(database_commit(&database), 0);
}

static int count(void *userdata, const struct job_row *row)
{
    ++*(unsigned *)userdata;
    return 0;
}

/* Returns the number of rows, or -errno. */
static int count_rows(void)
{
    unsigned n = 0;
    int r = job_rows_scan(&database, 0, false, 1000000, count, &n);

    return r < 0 ? r : (int)n;
}

/* A file beside the database. */
static const char *beside(const char *suffix)
{
    static char path[128];

    (void)snprintf(path, sizeof(path), "%s%s", scratch.path, suffix);
    return path;
}

static void execute(const char *sql)
{
    sqlite3 *handle;

    ck_assert_int_eq(sqlite3_open(scratch.path, &handle), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(handle), SQLITE_OK);
}

TEST(rows_are_there_after_the_next_opening)
{
    ck_assert_int_eq(open_it(), 0);
    uint64_t run = database.run;
    add_rows(1, 10);
    database_close(&database, false);
    ck_assert_int_eq(open_it(), 0);
    ck_assert_uint_eq(database.run, run + 1);
    ck_assert_int_eq(count_rows(), 10);
}

TEST(a_second_one_is_refused)
{
    struct database second = DATABASE_NULL;

    ck_assert_int_eq(open_it(), 0);
    ck_assert_int_eq(database_open(&second, scratch.path, NULL), -EALREADY);
    ck_assert_ptr_nonnull(strstr(second.problem, "another trouped"));
    ck_assert_ptr_nonnull(strstr(second.problem, scratch.path));
    database_close(&database, false);
    ck_assert_int_eq(database_open(&second, scratch.path, NULL), 0);
    database_close(&second, false);
}

TEST(a_lock_of_the_directory_which_others_may_take_is_no_lock_of_the_database)
{
    const int fd = open(scratch.parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char path[PATH_MAX];
    struct stat status;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(flock(fd, LOCK_SH), 0);
    ck_assert_int_eq(open_it(), 0);
    (void)snprintf(path, sizeof(path), "%s-lock", scratch.path);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    close_fd(fd);
}

TEST(another_program_may_read_meanwhile)
{
    sqlite3 *handle;
    sqlite3_stmt *statement;

    ck_assert_int_eq(open_it(), 0);
    add_rows(1, 3);
    ck_assert_int_eq(sqlite3_open(scratch.path, &handle), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(handle, "SELECT count(*) FROM job", -1, &statement, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    ck_assert_int_eq(sqlite3_column_int(statement, 0), 3);
    add_rows(4, 5);
    ck_assert_int_eq(database_checkpoint(&database), 0);
    add_rows(6, 6);
    ck_assert_int_eq(sqlite3_finalize(statement), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(handle), SQLITE_OK);
    ck_assert_int_eq(count_rows(), 6);
}

/* Writes zeros into the file. */
static void damage(off_t at, size_t size)
{
    _cleanup_free_ char *zeros = calloc(1, size);
    _cleanup_close_ int fd = open(scratch.path, O_WRONLY | O_CLOEXEC);

    ck_assert_int_eq(pwrite(fd, zeros, size, at), (ssize_t)size);
}

static off_t size_of_file(void)
{
    struct stat status;

    ck_assert_int_eq(stat(scratch.path, &status), 0);
    return status.st_size;
}

/* Opening fails, names file and remedy, and leaves the file. */
static void check_refused(int error, const char *text)
{
    const off_t size = size_of_file();

    ck_assert_int_eq(open_it(), error);
    ck_assert_ptr_null(database.handle);
    ck_assert_msg(strstr(database.problem, text) && strstr(database.problem, scratch.path), "%s",
                  database.problem);
    if (error == -EUCLEAN)
        ck_assert_ptr_nonnull(strstr(database.problem, "restore a backup"));
    ck_assert_int_eq(size_of_file(), size);
}

static void make(void)
{
    ck_assert_int_eq(open_it(), 0);
    add_rows(1, 1000);
    database_close(&database, false);
}

TEST(a_damaged_header_is_refused)
{
    make();
    damage(0, 100);
    check_refused(-EUCLEAN, "not a database");
}

TEST(a_damaged_schema_is_refused)
{
    make();
    damage(100, 1000);
    check_refused(-EUCLEAN, "malformed");
}

TEST(a_damaged_page_is_found_when_it_is_read)
{
    make();
    damage(size_of_file() / 2, 16384);
    ck_assert_int_eq(open_it(), 0);
    ck_assert_int_eq(count_rows(), -EUCLEAN);
    ck_assert_ptr_nonnull(strstr(database.problem, "restore a backup"));
}

TEST(a_file_cut_short_is_refused)
{
    make();
    ck_assert_int_eq(truncate(scratch.path, 8192), 0);
    if (open_it() == 0)
        ck_assert_int_eq(count_rows(), -EUCLEAN);
    ck_assert_ptr_nonnull(strstr(database.problem, "restore a backup"));
}

TEST(an_empty_file_is_refused)
{
    make();
    ck_assert_int_eq(rename(scratch.path, beside("-wal")), 0);
    close_fd(open(scratch.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    check_refused(-EUCLEAN, "it is empty");
    ck_assert_int_eq(access(beside("-wal"), F_OK), 0);
}

TEST(the_database_of_another_program_is_refused)
{
    make();
    execute("PRAGMA application_id = 1");
    check_refused(-EUCLEAN, "no database of trouped");
}

TEST(a_log_without_its_database_is_refused)
{
    make();
    ck_assert_int_eq(rename(scratch.path, beside("-wal")), 0);
    ck_assert_int_eq(open_it(), -EUCLEAN);
    ck_assert_int_lt(access(scratch.path, F_OK), 0);
}

static void move_away_and_back(const char *suffix)
{
    char aside[256];

    (void)snprintf(aside, sizeof(aside), "%s-aside", beside(suffix));
    ck_assert_int_eq(open_it(), 0);
    add_rows(1, 1);
    ck_assert_int_eq(rename(beside(suffix), aside), 0);
    database_begin(&database);
    ck_assert_int_eq(database_commit(&database), -ESTALE);
    ck_assert_ptr_nonnull(strstr(database.problem, "removed or replaced"));
    ck_assert_int_eq(rename(aside, beside(suffix)), 0);
    database_close(&database, true);
    ck_assert_int_eq(open_it(), 0);
    ck_assert_int_eq(count_rows(), 1);
}

TEST(a_database_that_is_removed_takes_no_commits)
{
    move_away_and_back("");
}

TEST(a_database_whose_file_system_has_another_device_number_is_opened_again)
{
    ck_assert_int_eq(open_it(), 0);
    add_rows(1, 1);
    database.file.device++; /* as if it had been mounted again since */
    database_begin(&database);
    ck_assert_int_eq(database_commit(&database), -ESTALE);
    database_close(&database, true);
    ck_assert_int_eq(open_it(), 0);
    ck_assert_int_eq(count_rows(), 1);
    database_close(&database, true);
    database.file.device++;
    database.file.born_sec = 0; /* and this file system has no times of birth */
    ck_assert_int_eq(open_it(), -ESTALE);
}

static ino_t inode_of(const char *path)
{
    struct stat status;

    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_ino;
}

/* Makes files until one has this inode, if the file system gives it again soon; that one, or the
 * last one, is where the database was. */
static void replace(ino_t inode)
{
    char name[16];

    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "-%u", i);
        close_fd(open(beside(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        if (inode_of(beside(name)) == inode)
            break;
    }
    ck_assert_int_eq(rename(beside(name), scratch.path), 0);
}

TEST(a_file_that_has_the_inode_of_a_removed_database_is_not_taken_for_it)
{
    scratch_deinit(&scratch);
    scratch_init_in(&scratch, "/tmp"); /* a file system in memory never does that */
    ck_assert_int_eq(open_it(), 0);
    ino_t inode = inode_of(scratch.path);
    ck_assert_int_eq(unlink(scratch.path), 0);
    database_begin(&database);
    ck_assert_int_eq(database_commit(&database), -ESTALE);
    database_close(&database, true);
    replace(inode);
    ck_assert_int_eq(open_it(), -ESTALE);
}

TEST(a_database_whose_log_is_removed_takes_no_commits)
{
    move_away_and_back("-wal");
}

TEST(a_database_that_was_open_is_not_made_anew)
{
    char aside[256];

    (void)snprintf(aside, sizeof(aside), "%s-aside", scratch.directory);
    ck_assert_int_eq(open_it(), 0);
    add_rows(1, 1);
    database_close(&database, true);
    ck_assert_int_eq(rename(scratch.directory, aside), 0);
    ck_assert_int_eq(open_it(), -ESTALE);
    ck_assert_int_lt(access(scratch.directory, F_OK), 0);
    ck_assert_int_eq(rename(aside, scratch.directory), 0);
    ck_assert_int_eq(open_it(), 0);
    ck_assert_int_eq(count_rows(), 1);
}

TEST(D14_a_newer_version_and_one_that_is_too_old_are_refused)
{
    char sql[64];

    make();
    (void)snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", SCHEMA_VERSION + 1);
    execute(sql);
    check_refused(-ENOTSUP, "newer trouped");
    (void)snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", SCHEMA_OLDEST - 1);
    execute(sql);
    check_refused(-ENOTSUP, "earlier trouped");
    (void)snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", SCHEMA_VERSION);
    execute(sql);
    ck_assert_int_eq(open_it(), 0);
    ck_assert_int_eq(count_rows(), 1000);
}

TEST(an_unfinished_creation_is_done_again)
{
    ck_assert_int_eq(mkdir(scratch.directory, 0700), 0);
    close_fd(open(beside(".new"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ck_assert_int_eq(open_it(), 0);
    ck_assert_int_lt(access(beside(".new"), F_OK), 0);
}

static off_t size_of_log(void)
{
    struct stat status;

    ck_assert_int_eq(stat(beside("-wal"), &status), 0);
    return status.st_size;
}

/* As the process that comes after one that was killed. */
static void open_as_another(void)
{
    database_close(&database, true);
    database = (struct database)DATABASE_NULL;
    ck_assert_int_eq(open_it(), 0);
}

TEST(a_lengthened_log_has_room_for_commits)
{
    ck_assert_int_eq(open_it(), 0);
    add_rows(1, 1);
    database_lengthen_log(&database);
    off_t size = size_of_log();
    ck_assert_int_gt(size, database.log_valid + (1 << 19));
    add_rows(2, 101);
    ck_assert_int_eq(size_of_log(), size);
    database_lengthen_log(&database);
    ck_assert_int_eq(size_of_log(), size);
    add_rows(102, 701);
    database_lengthen_log(&database);
    ck_assert_int_gt(size_of_log(), database.log_valid + (1 << 19));
}

TEST(a_log_that_began_anew_is_lengthened_again)
{
    ck_assert_int_eq(open_it(), 0);
    add_rows(1, 500);
    database_lengthen_log(&database);
    execute("PRAGMA wal_checkpoint(TRUNCATE)");
    ck_assert_int_eq(size_of_log(), 0);
    add_rows(501, 501);
    database_lengthen_log(&database);
    ck_assert_int_gt(size_of_log(), database.log_valid + (1 << 19));
}

TEST(the_next_process_reads_a_lengthened_log_to_its_end)
{
    ck_assert_int_eq(open_it(), 0);
    add_rows(1, 100);
    database_lengthen_log(&database);
    off_t end = database.log_valid;
    open_as_another();
    ck_assert_int_eq(count_rows(), 100);
    /* It has counted its run. */
    ck_assert_int_gt(database.log_valid, end);
    ck_assert_int_lt(database.log_valid, end + (1 << 19));
    add_rows(101, 200);
    open_as_another();
    ck_assert_int_eq(count_rows(), 200);
}

TEST(a_commit_longer_than_the_log_before_it_is_kept_by_a_cut)
{
    ck_assert_int_eq(open_it(), 0);
    add_rows(1, 1);
    ck_assert_int_eq(database_checkpoint(&database), 0);
    add_rows(2, 500);
    database_lengthen_log(&database);
    database_close(&database, true);
    ck_assert_int_eq(open_it(), 0);
    ck_assert_int_eq(count_rows(), 500);
}

static int read_pragma(sqlite3 *handle, const char *sql)
{
    sqlite3_stmt *statement;

    ck_assert_int_eq(sqlite3_prepare_v2(handle, sql, -1, &statement, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    int value = sqlite3_column_int(statement, 0);
    (void)sqlite3_finalize(statement);
    return value;
}

TEST(each_version_is_brought_to_the_last_one)
{
    sqlite3 *handle;

    ck_assert_int_eq(sqlite3_open(":memory:", &handle), SQLITE_OK);
    ck_assert_int_eq(schema_migrate(handle, 0), SQLITE_OK);
    ck_assert_int_eq(read_pragma(handle, "PRAGMA user_version"), SCHEMA_VERSION);
    ck_assert_int_eq(read_pragma(handle, "PRAGMA application_id"), SCHEMA_APPLICATION);
    ck_assert_int_eq(schema_migrate(handle, SCHEMA_VERSION), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(handle), SQLITE_OK);
}

TEST(a_migration_that_fails_changes_nothing)
{
    sqlite3 *handle;

    ck_assert_int_eq(sqlite3_open(":memory:", &handle), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(handle, "CREATE TABLE dead (x)", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_ne(schema_migrate(handle, 0), SQLITE_OK);
    ck_assert_int_eq(sqlite3_get_autocommit(handle), 1);
    ck_assert_int_eq(read_pragma(handle, "PRAGMA user_version"), 0);
    ck_assert_int_eq(read_pragma(handle, "SELECT count(*) FROM sqlite_schema"), 1);
    ck_assert_int_eq(sqlite3_close(handle), SQLITE_OK);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
