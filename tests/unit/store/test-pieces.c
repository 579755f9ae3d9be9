/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-rows.h"
#include "supervisor/store/pieces.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"
#include <errno.h>
#include <limits.h>
#include <sys/mman.h>

/* Three pieces and a part of another. */
#define SIZE  ((size_t)(3 * PIECE_SIZE + 5))
#define STEPS 4

static struct database database = DATABASE_NULL;
static struct scratch scratch;
static struct payload payload = PAYLOAD_NULL;

static void open_it(void)
{
    ck_assert_msg(database_open(&database, scratch.path, NULL) == 0, "%s", database.problem);
    database_begin(&database);
}

static void next_transaction(void)
{
    ck_assert_int_eq(database_commit(&database), 0);
    database_begin(&database);
}

static void setup(void)
{
    char *data = malloc(SIZE);

    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (char)(i >> 12 ^ i);
    ck_assert_int_eq(payload_set(&payload, data, SIZE), 0);
    free(data);
    scratch_init(&scratch);
    open_it();
}

static void teardown(void)
{
    ck_assert_int_eq(database_commit(&database), 0);
    database_close(&database, false);
    scratch_deinit(&scratch);
    payload_deinit(&payload);
}

static int write_one(void)
{
    return pieces_write(&database, 1, PIECES_PAYLOAD, &payload);
}

/* Writes pieces, one a transaction. */
static void write_pieces(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ck_assert_int_eq(write_one(), PIECES_E_MORE);
        next_transaction();
    }
}

static struct job_row row_of(const char *bytes)
{
    struct job_row row = JOB_ROW_NULL;

    row.number = 1;
    row.group = "g";
    row.group_size = 1;
    row.payload = bytes;
    row.payload_size = SIZE;
    return row;
}

static void add_row(void)
{
    const struct job_row row = row_of(NULL);

    ck_assert_int_eq(write_one(), 0);
    ck_assert_int_eq(job_rows_add(&database, &row), 0);
    next_transaction();
}

static int compare(void *userdata, const struct job_row *row)
{
    ck_assert_uint_eq(row->payload_size, SIZE);
    if (row->payload)
        ck_assert_mem_eq(row->payload, payload_data(&payload), SIZE);
    *(unsigned *)userdata += 1;
    return 0;
}

static void assert_read(void)
{
    unsigned n = 0;

    char *bytes = malloc(SIZE);
    uint64_t done = 0;

    ck_assert_int_eq(pieces_read(&database, 1, PIECES_PAYLOAD, bytes, SIZE, &done, 1),
                     PIECES_E_MORE);
    ck_assert_uint_eq(done, PIECE_SIZE);
    ck_assert_int_eq(pieces_read(&database, 1, PIECES_PAYLOAD, bytes, SIZE, &done, UINT_MAX), 0);
    ck_assert_mem_eq(bytes, payload_data(&payload), SIZE);
    free(bytes);
    ck_assert_int_eq(job_rows_fetch(&database, 1, compare, &n), 0);
    ck_assert_int_eq(job_rows_scan(&database, 0, 1, compare, &n), 0);
    ck_assert_int_eq(job_rows_list(&database, 0, true, 1, compare, &n), 0);
    ck_assert_uint_eq(n, 3);
}

static int64_t count(const char *sql)
{
    sqlite3_stmt *query = database_query(&database, sql);

    ck_assert_int_eq(database_step(&database, query), DATABASE_E_ROW);
    int64_t n = sqlite3_column_int64(query, 0);
    (void)sqlite3_reset(query);
    return n;
}

static int64_t count_pieces(void)
{
    return count("SELECT count(*) FROM piece");
}

static void sweep(void)
{
    for (unsigned i = 0; pieces_sweep(&database) == PIECES_E_MORE; i++) {
        ck_assert_uint_lt(i, 2 * STEPS);
        next_transaction();
    }
    ck_assert_int_eq(count("SELECT count(*) FROM unused"), 0);
}

TEST(a_transaction_takes_one_piece)
{
    for (unsigned i = 0; i < STEPS; i++) {
        ck_assert_uint_eq(pieces_left(&database, 1, PIECES_PAYLOAD, SIZE), SIZE - i * PIECE_SIZE);
        ck_assert_int_eq(write_one(), PIECES_E_MORE);
        ck_assert_int_eq(write_one(), PIECES_E_MORE);
        ck_assert_int_eq(pieces_write(&database, 2, PIECES_RESULT, &payload), PIECES_E_MORE);
        ck_assert_int_eq(count_pieces(), i + 1);
        next_transaction();
    }
    ck_assert_uint_eq(pieces_left(&database, 1, PIECES_PAYLOAD, SIZE), 0);
    add_row();
    assert_read();
}

TEST(pieces_are_written_from_a_file)
{
    const struct payload bytes = payload;

    payload_init(&payload);
    payload_set_blob(&payload, memfd_create("blob", MFD_CLOEXEC), SIZE);
    ck_assert_int_eq(pwrite(payload.fd, payload_data(&bytes), SIZE, 0), SIZE);
    write_pieces(STEPS);
    add_row();
    payload_deinit(&payload);
    payload = bytes;
    assert_read();
}

/* Another process opens the database. */
static void reopen(void)
{
    ck_assert_int_eq(database_commit(&database), 0);
    database_close(&database, false);
    open_it();
}

TEST(pieces_without_a_row_are_removed_once_another_run_has_begun)
{
    write_pieces(2);
    ck_assert_int_eq(pieces_sweep(&database), 0);
    reopen();
    ck_assert_int_eq(write_one(), PIECES_E_MORE); /* they may be those of another result */
    ck_assert_int_eq(count_pieces(), 2);
    sweep();
    ck_assert_int_eq(count_pieces(), 0);
    write_pieces(STEPS);
    add_row();
    reopen();
    ck_assert_int_eq(pieces_sweep(&database), 0);
    assert_read();
}

TEST(a_row_takes_its_pieces_along)
{
    write_pieces(STEPS);
    add_row();
    ck_assert_int_eq(job_rows_remove(&database, ROWS_ALL, 1), 0);
    sweep();
    ck_assert_int_eq(count_pieces(), 0);
}

TEST(a_dead_letter_takes_over_the_pieces_of_its_job)
{
    struct job_row row = row_of(NULL);
    unsigned n = 0;

    write_pieces(STEPS);
    add_row();
    ck_assert_int_eq(job_rows_remove(&database, 1u << ROWS_JOB, 1), 0);
    ck_assert_int_eq(job_rows_put(&database, ROWS_DEAD, &row), 0);
    sweep();
    ck_assert_int_eq(job_rows_scan_dead(&database, compare, &n), 0);
    ck_assert_uint_eq(n, 1);
    row.payload_dropped = true;
    ck_assert_int_eq(job_rows_put(&database, ROWS_DEAD, &row), 0);
    sweep();
    ck_assert_int_eq(count_pieces(), 0);
}

TEST(a_dead_letter_takes_over_the_pieces_of_its_job_on_a_full_disk)
{
    struct job job = {.payload = payload};
    struct durable_job durable = {
        .record.job = &job,
        .row = row_of(NULL),
        .given = DURABLE_END,
        .end = JOB_DEAD,
        .keeps = DURABLE_LETTER,
    };
    unsigned n = 0;

    write_pieces(STEPS);
    add_row();
    database.bare = true;
    ck_assert_int_eq(durable_write(&durable.task, &database), 0);
    database.bare = false;
    sweep();
    ck_assert_int_eq(job_rows_scan_dead(&database, compare, &n), 0);
    ck_assert_uint_eq(n, 1);
}

TEST(a_job_that_replaces_a_dead_letter_leaves_a_full_disk_to_the_ends_of_jobs)
{
    struct durable_job durable = {
        .row = row_of(NULL), .given = DURABLE_ADD, .payload = payload, .replaces = 7};

    database.bare = true;
    ck_assert_int_eq(durable_write(&durable.task, &database), -ENOSPC);
    ck_assert_int_eq(count_pieces(), 0);
    write_pieces(STEPS);
    ck_assert_int_eq(durable_write(&durable.task, &database), 0);
    /* It is unknown whether that is on disk. */
    ck_assert_int_eq(durable_write(&durable.task, &database), 0);
    database.bare = false;
    assert_read();
}

TEST(a_missing_piece_is_found)
{
    char *bytes = malloc(SIZE);
    uint64_t done = 0;

    write_pieces(STEPS);
    add_row();
    ck_assert_int_eq(
        sqlite3_exec(database.handle, "DELETE FROM piece WHERE part = 1", NULL, NULL, NULL),
        SQLITE_OK);
    ck_assert_int_eq(pieces_read(&database, 1, PIECES_PAYLOAD, bytes, SIZE, &done, UINT_MAX),
                     PIECES_E_MISSING);
    free(bytes);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
