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

/* Writes pieces, one a transaction; the last one is left to that of the row. */
static void write_pieces(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ck_assert_int_eq(write_one(), i + 1 == STEPS ? 0 : PIECES_E_MORE);
        if (i + 1 < STEPS)
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
    ck_assert_int_eq(job_rows_scan(&database, 0, false, 1, compare, &n), 0);
    ck_assert_int_eq(job_rows_scan(&database, 0, true, 1, compare, &n), 0);
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

TEST(a_transaction_takes_two_pieces)
{
    ck_assert_uint_eq(pieces_left(&database, 1, PIECES_PAYLOAD, &payload), SIZE);
    ck_assert_int_eq(write_one(), PIECES_E_MORE);
    ck_assert_uint_eq(pieces_left(&database, 1, PIECES_PAYLOAD, &payload), SIZE - PIECE_SIZE);
    ck_assert_int_eq(pieces_write(&database, 2, PIECES_RESULT, &payload), PIECES_E_MORE);
    ck_assert_int_eq(count_pieces(), 2);
    ck_assert_int_eq(write_one(), PIECES_E_MORE);
    ck_assert_int_eq(count_pieces(), 2);
    next_transaction();
    ck_assert_int_eq(write_one(), PIECES_E_MORE);
    next_transaction();
    ck_assert_int_eq(write_one(), PIECES_E_MORE);
    next_transaction();
    ck_assert_int_eq(write_one(), 0);
    ck_assert_uint_eq(pieces_left(&database, 1, PIECES_PAYLOAD, &payload), 0);
    add_row();
    assert_read();
}

TEST(payloads_of_a_piece_each_share_a_transaction_up_to_two_mebibytes)
{
    struct payload small = PAYLOAD_NULL;
    int64_t n = 0;

    ck_assert_int_eq(payload_set(&small, payload_data(&payload), 100000), 0);
    while (pieces_write(&database, n + 1, PIECES_PAYLOAD, &small) == 0)
        n++;
    ck_assert_int_eq(n, 2 * PIECE_SIZE / 100000 + 1);
    ck_assert_int_eq(count_pieces(), n);
    ck_assert_int_eq(count("SELECT count(*) FROM unused"), 0);
    payload_deinit(&small);
}

static void make_blob(struct payload *blob, const void *data, size_t size)
{
    payload_set_blob(blob, memfd_create("blob", MFD_CLOEXEC), size);
    ck_assert_int_eq(pwrite(blob->fd, data, size, 0), (ssize_t)size);
}

TEST(pieces_are_written_from_a_file)
{
    const struct payload bytes = payload;

    payload_init(&payload);
    make_blob(&payload, payload_data(&bytes), SIZE);
    write_pieces(STEPS);
    add_row();
    payload_deinit(&payload);
    payload = bytes;
    assert_read();
}

static int compare_small(void *userdata, const struct job_row *row)
{
    ck_assert_uint_eq(row->payload_size, 5);
    ck_assert_mem_eq(row->payload, "hello", 5);
    return 1;
}

/* Reading it may fail, which must not be after a row has been removed. */
TEST(a_small_payload_in_a_file_is_a_piece)
{
    struct payload blob = PAYLOAD_NULL;
    struct job_row row = row_of(NULL);

    make_blob(&blob, "hello", 5);
    row.payload_fd = blob.fd;
    row.payload_size = 5;
    ck_assert_int_eq(pieces_write(&database, 1, PIECES_PAYLOAD, &blob), 0);
    ck_assert_int_eq(job_rows_add(&database, &row), 0);
    ck_assert_int_eq(count_pieces(), 1);
    ck_assert_int_eq(job_rows_fetch(&database, 1, compare_small, NULL), 1);
    ck_assert_int_eq(job_rows_remove(&database, 1u << ROWS_JOB, 1), 0);
    ck_assert_int_eq(count_pieces(), 0);
    payload_deinit(&blob);
}

/* Another process opens the database. */
static void reopen(void)
{
    ck_assert_int_eq(database_commit(&database), 0);
    database_close(&database, false);
    open_it();
}

TEST(pieces_of_a_job_that_is_not_accepted_are_removed)
{
    write_pieces(2);
    ck_assert_int_eq(job_rows_remove(&database, ROWS_ALL, 1), 0);
    sweep();
    ck_assert_int_eq(count_pieces(), 0);
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
    ck_assert_int_eq(job_rows_scan_ends(&database, ROWS_DEAD, INT64_MIN, 0, 8, compare, &n), 0);
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
    ck_assert_int_eq(job_rows_scan_ends(&database, ROWS_DEAD, INT64_MIN, 0, 8, compare, &n), 0);
    ck_assert_uint_eq(n, 1);
}

static int count_bytes(void *userdata, const struct job_row *row)
{
    *(uint64_t *)userdata += row->payload ? row->payload_size : 0;
    return 0;
}

TEST(a_dead_letter_takes_over_a_payload_of_one_piece)
{
    struct job job = {.payload = PAYLOAD_NULL};
    struct durable_job durable = {
        .record.job = &job,
        .row = row_of(NULL),
        .given = DURABLE_END,
        .end = JOB_DEAD,
        .keeps = DURABLE_LETTER,
    };
    struct job_row row = row_of(NULL);
    uint64_t n = 0;

    ck_assert_int_eq(payload_set(&job.payload, payload_data(&payload), 8192), 0);
    row.payload_size = 8192;
    ck_assert_int_eq(pieces_write(&database, 1, PIECES_PAYLOAD, &job.payload), 0);
    ck_assert_int_eq(job_rows_add(&database, &row), 0);
    next_transaction();
    ck_assert_int_eq(durable_write(&durable.task, &database), 0);
    ck_assert_uint_eq(database.n_bytes, 0);
    ck_assert_int_eq(job_rows_scan_ends(&database, ROWS_DEAD, 0, 0, 8, count_bytes, &n), 0);
    ck_assert_uint_eq(n, 8192);
    ck_assert_int_eq(job_rows_remove(&database, 1u << ROWS_DEAD, 1), 0);
    ck_assert_int_eq(count_pieces(), 0);
    payload_deinit(&job.payload);
}

static void put_letter(int64_t number)
{
    struct job_row letter = JOB_ROW_NULL;

    letter.number = number;
    letter.group = "g";
    letter.group_size = 1;
    letter.payload = "";
    ck_assert_int_eq(job_rows_put(&database, ROWS_DEAD, &letter), 0);
}

TEST(a_job_that_replaces_a_dead_letter_leaves_a_full_disk_to_the_ends_of_jobs)
{
    struct durable_job durable = {
        .row = row_of(NULL), .given = DURABLE_ADD, .payload = payload, .replaces = 7};

    put_letter(7);
    database.bare = true;
    ck_assert_int_eq(durable_write(&durable.task, &database), -ENOSPC);
    ck_assert_int_eq(count_pieces(), 0);
    ck_assert_int_eq(count("SELECT count(*) FROM dead"), 1);
    write_pieces(STEPS);
    ck_assert_int_eq(durable_write(&durable.task, &database), 0);
    /* It is unknown whether that is on disk. */
    ck_assert_int_eq(durable_write(&durable.task, &database), 0);
    ck_assert_int_eq(count("SELECT count(*) FROM dead"), 0);
    database.bare = false;
    next_transaction();
    assert_read();
}

TEST(a_dead_letter_stays_if_the_job_that_replaces_it_cannot_be_written)
{
    struct durable_job durable = {
        .row = row_of(NULL), .given = DURABLE_ADD, .payload = PAYLOAD_NULL, .replaces = 7};

    put_letter(7);
    payload_set_blob(&durable.payload, memfd_create("empty", MFD_CLOEXEC), 5);
    durable.row.payload_fd = durable.payload.fd;
    durable.row.payload_size = 5;
    ck_assert_int_eq(durable_write(&durable.task, &database), -EPROTO);
    ck_assert_int_eq(database.error, 0);
    ck_assert_int_eq(count("SELECT count(*) FROM dead"), 1);
    payload_deinit(&durable.payload);
}

TEST(a_result_that_cannot_be_read_is_given_up_and_its_job_ends)
{
    struct job job = {.result = PAYLOAD_NULL};
    struct durable_job durable = {
        .record.job = &job,
        .row = row_of(NULL),
        .given = DURABLE_END,
        .end = JOB_SUCCEEDED,
        .keeps = DURABLE_RESULT | DURABLE_BYTES,
    };

    write_pieces(STEPS);
    add_row();
    payload_set_blob(&job.result, memfd_create("empty", MFD_CLOEXEC), 5);
    ck_assert_int_eq(durable_write(&durable.task, &database), 0);
    ck_assert_int_eq(durable.unkept, -EPROTO);
    ck_assert_int_eq(count("SELECT count(*) FROM job"), 0);
    ck_assert_int_eq(count("SELECT count(*) FROM ended WHERE result IS NULL"), 1);
    payload_deinit(&job.result);
}

TEST(D4_a_large_payload_is_not_left_behind_by_a_job_whose_name_is_taken)
{
    struct durable_job durable = {
        .row = row_of(NULL), .given = DURABLE_ADD, .payload = PAYLOAD_NULL};
    struct job_row taken = row_of("x");

    taken.number = 2;
    taken.payload_size = 1;
    taken.name = durable.row.name = "taken";
    taken.name_size = durable.row.name_size = 5;
    ck_assert_int_eq(job_rows_add(&database, &taken), 0);
    ck_assert_int_eq(payload_set(&durable.payload, payload_data(&payload), 8192), 0);
    durable.row.payload_size = 8192;
    ck_assert_int_eq(durable_write(&durable.task, &database), JOB_ROWS_E_EXISTS);
    ck_assert_int_eq(count_pieces(), 0);
    payload_deinit(&durable.payload);
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
