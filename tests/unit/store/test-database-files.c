/* SPDX-License-Identifier: MIT */
#include "supervisor/store/database-files.h"

#include "supervisor/store/backup.h"
#include "supervisor/store/job-rows.h"
#include "tests/unit/store/fake-disk.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"

#define LARGE (SIDE_FILE_MIN + 17)

static struct database database = DATABASE_NULL;
static struct scratch scratch;
static char bytes[LARGE];

static int open_it(void)
{
    return database_open(&database, scratch.path, FAKE_DISK);
}

static void open_again(void)
{
    database_close(&database, false);
    ck_assert_msg(open_it() == 0, "%s", database.problem);
}

static void setup(void)
{
    scratch_init(&scratch);
    fake_disk_init();
    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = (char)(i * 7 + i / 4096);
    ck_assert_msg(open_it() == 0, "%s", database.problem);
}

static void teardown(void)
{
    database_close(&database, false);
    fake_disk_deinit();
    scratch_deinit(&scratch);
}

static const char *path_of(const char *name)
{
    static char path[256];

    (void)snprintf(path, sizeof(path), "%s-blobs/%s", scratch.path, name);
    return path;
}

static bool exists(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

static void make_file(const char *name)
{
    const int fd = open(path_of(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    close_fd(fd);
}

static int add(int64_t number, uint64_t size)
{
    struct job_row row = JOB_ROW_NULL;

    row.number = number;
    row.group = "g";
    row.group_size = 1;
    row.payload = bytes;
    row.payload_size = size;
    return job_rows_add(&database, &row);
}

static void add_committed(int64_t number)
{
    database_begin(&database);
    ck_assert_int_eq(add(number, LARGE), 0);
    ck_assert_int_eq(database_commit(&database), 0);
}

static void remove_committed(int64_t number)
{
    database_begin(&database);
    ck_assert_int_eq(job_rows_remove(&database, 1u << ROWS_JOB, number), 0);
    ck_assert_int_eq(database_commit(&database), 0);
}

static int check_payload(void *userdata, const struct job_row *row)
{
    ++*(unsigned *)userdata;
    ck_assert_uint_eq(row->payload_size, LARGE);
    ck_assert(memcmp(row->payload, bytes, LARGE) == 0);
    return 0;
}

static int check_size(void *userdata, const struct job_row *row)
{
    ++*(unsigned *)userdata;
    ck_assert_uint_eq(row->payload_size, LARGE);
    return 0;
}

static int fetch(int64_t number)
{
    unsigned n = 0;

    database_begin(&database);
    int r = job_rows_fetch(&database, number, check_payload, &n);
    ck_assert(r != 0 || n == 1);
    database_rollback(&database);
    return r;
}

TEST(a_large_payload_is_a_file_that_only_we_can_read)
{
    struct stat status;
    unsigned n = 0;

    add_committed(1);
    ck_assert_int_eq(stat(path_of("job.1"), &status), 0);
    ck_assert_uint_eq((uint64_t)status.st_size, LARGE);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    ck_assert_int_eq(stat(path_of(""), &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0700);
    open_again();
    ck_assert_int_eq(fetch(1), 0);
    ck_assert_int_eq(job_rows_scan(&database, 0, 10, check_size, &n), 0);
    ck_assert_int_eq(job_rows_list(&database, 0, true, 10, check_size, &n), 0);
    ck_assert_uint_eq(n, 2);
}

TEST(a_small_payload_is_a_value_of_its_row)
{
    database_begin(&database);
    ck_assert_int_eq(add(1, SIDE_FILE_MIN - 1), 0);
    ck_assert_int_eq(database_commit(&database), 0);
    ck_assert(!exists(""));
}

TEST(a_file_is_removed_after_the_commit_that_removes_its_row)
{
    add_committed(1);
    database_begin(&database);
    ck_assert_int_eq(job_rows_remove(&database, 1u << ROWS_JOB, 1), 0);
    ck_assert(exists("job.1"));
    database_rollback(&database);
    ck_assert_int_eq(fetch(1), 0);
    remove_committed(1);
    ck_assert(!exists("job.1"));
}

TEST(a_row_that_is_replaced_in_one_transaction_keeps_its_file)
{
    add_committed(1);
    database_begin(&database);
    ck_assert_int_eq(job_rows_remove(&database, 1u << ROWS_JOB, 1), 0);
    ck_assert_int_eq(add(1, LARGE), 0);
    ck_assert_int_eq(database_commit(&database), 0);
    ck_assert_int_eq(fetch(1), 0);
}

static int check_large(void *userdata, const struct job_row *row)
{
    *(bool *)userdata = true;
    ck_assert_uint_eq(row->payload_size, LARGE);
    ck_assert(memcmp(row->payload, bytes, LARGE) == 0);
    return 0;
}

static int put(enum row_table table, uint64_t size)
{
    struct job_row row = JOB_ROW_NULL;

    row.number = 1;
    row.group = "g";
    row.group_size = 1;
    row.payload = bytes;
    row.payload_size = size;
    return job_rows_put(&database, table, &row);
}

TEST(results_and_dead_letters_have_files_of_their_own)
{
    bool result = false, letter = false;

    add_committed(1);
    database_begin(&database);
    ck_assert_int_eq(job_rows_remove(&database, 1u << ROWS_JOB, 1), 0);
    ck_assert_int_eq(put(ROWS_ENDED, LARGE), 0);
    ck_assert_int_eq(put(ROWS_DEAD, LARGE), 0);
    ck_assert_int_eq(database_commit(&database), 0);
    ck_assert(!exists("job.1") && exists("ended.1") && exists("dead.1"));
    open_again();
    ck_assert_int_eq(job_rows_scan_ended(&database, 0, -1, 1, check_large, &result), 0);
    ck_assert_int_eq(job_rows_scan_dead(&database, check_large, &letter), 0);
    ck_assert(result && letter);
    database_begin(&database);
    ck_assert_int_eq(put(ROWS_ENDED, 5), 0);
    ck_assert_int_eq(job_rows_remove(&database, 1u << ROWS_DEAD, 1), 0);
    ck_assert_int_eq(database_commit(&database), 0);
    ck_assert(!exists("ended.1") && !exists("dead.1"));
}

TEST(what_a_crash_leaves_is_removed_when_the_database_is_opened)
{
    add_committed(1);
    make_file("job.2");
    make_file("ended.1");
    make_file("dead.-1");
    make_file("job.02");
    make_file("notes");
    open_again();
    ck_assert(exists("job.1") && exists("notes") && exists("job.02"));
    ck_assert(!exists("job.2") && !exists("ended.1") && !exists("dead.-1"));
    ck_assert_uint_eq(database.side.n, 1);
    ck_assert_uint_eq(database.side.bytes, LARGE);
}

TEST(a_file_that_found_no_space_is_removed_and_the_transaction_goes_on)
{
    add_committed(1);
    fake_disk_fail(FAKE_ENOSPC, 12, 1); /* a file is 9 writes */
    database_begin(&database);
    ck_assert_int_eq(add(2, LARGE), 0);
    ck_assert_int_eq(add(3, LARGE), -ENOSPC);
    ck_assert(exists("job.2") && !exists("job.3"));
    fake_disk_fail(FAKE_NO_FAULT, 0, 0);
    ck_assert_int_eq(database_commit(&database), 0);
    ck_assert_int_eq(fetch(2), 0);
    ck_assert_int_eq(fetch(3), JOB_ROWS_E_MISSING);
}

TEST(a_file_is_removed_with_a_transaction_that_found_no_space)
{
    add_committed(1);
    database_begin(&database);
    ck_assert_int_eq(add(2, LARGE), 0);
    database.error = -ENOSPC;
    ck_assert_int_eq(database_commit(&database), -ENOSPC);
    ck_assert(exists("job.2"));
    database_rollback(&database);
    ck_assert(exists("job.1") && !exists("job.2"));
}

TEST(a_large_file_is_written_in_pieces_over_several_transactions)
{
    const struct side_file file = {.table = ROWS_JOB, .number = 2};
    const uint64_t size = (UINT64_C(9) << 20) + 1;
    unsigned n_pieces = 1;
    char *large = calloc(1, size);
    int r;

    ck_assert_ptr_nonnull(large);
    add_committed(1);
    do {
        database_begin(&database);
        r = side_files_begin(&database, file, large, -1, size, 0);
        n_pieces += r == SIDE_FILES_E_MORE;
        ck_assert_int_eq(database_commit(&database), 0);
    } while (r == SIDE_FILES_E_MORE);
    free(large);
    ck_assert_int_eq(r, 0);
    ck_assert_uint_ge(n_pieces, 3);
    ck_assert(exists("job.2"));
    open_again(); /* no row has come */
    ck_assert(exists("job.1") && !exists("job.2"));
}

TEST(a_file_that_would_leave_too_little_space_is_not_begun)
{
    const struct side_file file = {.table = ROWS_JOB, .number = 1};

    database_begin(&database);
    ck_assert_int_eq(side_files_begin(&database, file, bytes, -1, LARGE, UINT64_MAX / 2), -ENOSPC);
    ck_assert(!exists("job.1"));
    ck_assert_int_eq(database_commit(&database), 0);
}

TEST(a_sync_that_fails_ends_the_transaction)
{
    fake_disk_fail(FAKE_EIO_ON_SYNC, 1, 1);
    database_begin(&database);
    ck_assert_int_eq(add(1, LARGE), -EIO);
    ck_assert_int_eq(database_commit(&database), -EIO);
    fake_disk_fail(FAKE_NO_FAULT, 0, 0);
    database_rollback(&database);
    database_close(&database, true);
    ck_assert_int_eq(open_it(), 0);
    ck_assert(!exists("job.1"));
}

TEST(a_file_that_is_missing_or_cut_is_damage)
{
    add_committed(1);
    ck_assert_int_eq(truncate(path_of("job.1"), 100), 0);
    ck_assert_int_eq(fetch(1), -EUCLEAN);
    ck_assert_ptr_nonnull(strstr(database.problem, path_of("job.1")));
    ck_assert_int_eq(unlink(path_of("job.1")), 0);
    ck_assert_int_eq(fetch(1), -EUCLEAN);
    ck_assert_ptr_nonnull(strstr(database.problem, "is missing or damaged; restore a backup"));
}

TEST(files_without_their_database_are_left_alone)
{
    add_committed(1);
    database_close(&database, false);
    ck_assert_int_eq(unlink(scratch.path), 0);
    ck_assert_int_eq(open_it(), -EUCLEAN);
    ck_assert(exists("job.1"));
    ck_assert_int_eq(unlink(path_of("job.1")), 0);
    ck_assert_int_eq(open_it(), 0);
}

static void step_until_copied(struct backup *backup)
{
    while (backup->copy)
        ck_assert_int_eq(backup_step(backup), BACKUP_E_GOES_ON);
}

TEST(a_backup_holds_the_files_even_of_rows_that_go_meanwhile)
{
    static char path[256];
    struct backup backup = {0};
    int r;

    (void)snprintf(path, sizeof(path), "%s/copy.db", scratch.parent);
    add_committed(1);
    add_committed(2);
    ck_assert_int_eq(backup_begin(&backup, &database, path), 0);
    step_until_copied(&backup);
    remove_committed(1);
    add_committed(3);
    ck_assert(exists("job.1"));
    while ((r = backup_step(&backup)) == BACKUP_E_GOES_ON)
        ;
    ck_assert_int_eq(r, 0);
    ck_assert_uint_gt(backup.size, 2 * LARGE);
    ck_assert(!exists("job.1") && exists("job.2") && exists("job.3"));
    /* The copy alone is enough. */
    database_close(&database, false);
    for (unsigned i = 2; i <= 3; i++)
        ck_assert_int_eq(unlink(path_of(i == 2 ? "job.2" : "job.3")), 0);
    ck_assert_int_eq(unlink(scratch.path), 0);
    ck_assert_int_eq(rename(path, scratch.path), 0);
    ck_assert_int_eq(open_it(), 0);
    ck_assert_int_eq(fetch(1), 0);
    ck_assert_int_eq(fetch(2), 0);
    ck_assert_int_eq(fetch(3), JOB_ROWS_E_MISSING);
}

const struct suite suite = {.name = "database-files", .setup = setup, .teardown = teardown};
