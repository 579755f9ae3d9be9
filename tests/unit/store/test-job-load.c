/* SPDX-License-Identifier: MIT */
#include "supervisor/store/job-load.h"
#include "supervisor/store/job-number.h"
#include "supervisor/store/pieces.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"
#include <sys/mman.h>

static struct database database = DATABASE_NULL;
static struct scratch scratch;
static struct job_load *load;

static char large[5000];

static void write_pieces(int64_t number, const char *data, size_t size)
{
    struct payload payload = PAYLOAD_NULL;

    ck_assert_int_eq(payload_set(&payload, data, size), 0);
    while (pieces_write(&database, number, PIECES_PAYLOAD, &payload) == PIECES_E_MORE) {
        ck_assert_int_eq(database_commit(&database), 0);
        database_begin(&database);
    }
    payload_deinit(&payload);
}

static void add(int64_t number, const char *name, const char *payload, size_t size)
{
    struct job_row row = JOB_ROW_NULL;

    row.number = number;
    row.group = "mail";
    row.group_size = 4;
    row.key = "acme";
    row.key_size = 4;
    row.name = name;
    row.name_size = (uint32_t)strlen(name);
    row.payload = payload;
    row.payload_size = size;
    write_pieces(number, payload, size);
    ck_assert_int_eq(job_rows_add(&database, &row), 0);
}

static void setup(void)
{
    scratch_init(&scratch);
    ck_assert_msg(database_open(&database, scratch.path, NULL) == 0, "%s", database.problem);
    database_begin(&database);
    memset(large, 'x', sizeof(large));
    add(1, "one", "hello", 5);
    add(2, "", large, sizeof(large));
    add(4, "", "", 0);
}

static void teardown(void)
{
    load = job_load_free(load);
    ck_assert_int_eq(database_commit(&database), 0);
    database_close(&database, false);
    scratch_deinit(&scratch);
}

static void apply(void)
{
    ck_assert_int_eq(load->task.apply(&load->task, &database), 0);
}

static void new_load(size_t n)
{
    load = job_load_new(n);
    ck_assert_ptr_nonnull(load);
    for (size_t i = 0; i < n; i++)
        load->entries[i].number = (int64_t)i + 1;
}

static void assert_loaded(size_t i, const char *name, const char *payload, size_t size)
{
    const struct loaded_job *job = load->entries[i].job;

    ck_assert_ptr_nonnull(job);
    ck_assert_int_eq(job->row.number, load->entries[i].number);
    ck_assert_uint_eq(job->row.group_size, 4);
    ck_assert_mem_eq(job->row.group, "mail", 4);
    ck_assert_mem_eq(job->row.key, "acme", 4);
    ck_assert_uint_eq(job->row.name_size, strlen(name));
    if (*name)
        ck_assert_mem_eq(job->row.name, name, strlen(name));
    ck_assert_uint_eq(job->payload.size, size);
    if (size > 0)
        ck_assert_mem_eq(payload_data(&job->payload), payload, size);
}

TEST(rows_are_copied_with_payloads_and_missing_ones_are_passed_over)
{
    new_load(4);
    apply();
    apply(); /* as after a transaction that failed */
    ck_assert_uint_eq(load->n_read, 4);
    assert_loaded(0, "one", "hello", 5);
    assert_loaded(1, "", large, sizeof(large));
    ck_assert_ptr_null(load->entries[2].job);
    assert_loaded(3, "", "", 0);
}

static char payload[9 << 20];

/* Begins to load a job whose payload is read in several parts. */
static void begin_large(void)
{
    payload[sizeof(payload) - 1] = 'x';
    add(5, "", payload, sizeof(payload));
    new_load(1);
    load->entries[0].number = 5;
    ck_assert_int_eq(load->task.apply(&load->task, &database), STORE_E_MORE);
}

TEST(a_large_payload_is_loaded_in_parts_into_a_sealed_file)
{
    const struct payload *loaded;
    const void *data;

    begin_large();
    ck_assert_int_eq(load->task.apply(&load->task, &database), STORE_E_MORE);
    apply();
    loaded = &load->entries[0].job->payload;
    ck_assert_uint_eq(loaded->size, sizeof(payload));
    ck_assert_int_eq(payload_blob_check(loaded->fd, sizeof(payload)), 0);
    ck_assert_int_eq(payload_blob_map(loaded->fd, sizeof(payload), &data), 0);
    ck_assert_mem_eq(data, payload, sizeof(payload));
    ck_assert_int_eq(munmap((void *)(uintptr_t)data, sizeof(payload)), 0);
}

TEST(a_job_that_ends_while_its_payload_is_loaded_is_missing)
{
    begin_large();
    ck_assert_int_eq(job_rows_remove(&database, ROWS_ALL, 5), 0);
    while (pieces_sweep(&database) == PIECES_E_MORE)
        ck_assert_int_eq(database.error, 0);
    apply();
    ck_assert_uint_eq(load->n_read, 1);
    ck_assert_ptr_null(load->entries[0].job);
}

TEST(a_job_that_becomes_a_dead_letter_while_its_payload_is_loaded_is_missing)
{
    struct job_row letter = JOB_ROW_NULL;

    letter.number = 5;
    letter.group = "mail";
    letter.group_size = 4;
    letter.payload_size = sizeof(payload);
    begin_large();
    ck_assert_int_eq(job_rows_remove(&database, 1u << ROWS_JOB, 5), 0);
    ck_assert_int_eq(job_rows_put(&database, ROWS_DEAD, &letter), 0);
    ck_assert_int_eq(load->task.apply(&load->task, &database), STORE_E_MORE);
    apply();
    ck_assert_uint_eq(load->n_read, 1);
    ck_assert_ptr_null(load->entries[0].job);
}

TEST(a_row_is_what_it_is_when_all_of_its_payload_has_been_read)
{
    const struct job_row moved = {.number = 5, .group = "post", .group_size = 4};

    begin_large();
    ck_assert_int_eq(job_rows_move(&database, &moved), 0);
    ck_assert_int_eq(load->task.apply(&load->task, &database), STORE_E_MORE);
    apply();
    ck_assert_uint_eq(load->entries[0].job->payload.size, sizeof(payload));
    ck_assert_str_eq(load->entries[0].job->row.group, "post");
}

/* Otherwise jobs could end that were read before its parts. */
TEST(a_payload_that_is_read_in_parts_is_the_first_of_its_load)
{
    add(5, "", payload, sizeof(payload));
    new_load(3);
    load->entries[1].number = 5;
    apply();
    ck_assert_uint_eq(load->n_read, 1);
    assert_loaded(0, "one", "hello", 5);
    ck_assert_ptr_null(load->entries[1].job);
    load->entries[0].number = 5;
    load->entries[1].number = 1;
    ck_assert_int_eq(load->task.apply(&load->task, &database), STORE_E_MORE);
    ck_assert_int_eq(load->task.apply(&load->task, &database), STORE_E_MORE);
    apply();
    ck_assert_uint_eq(load->n_read, 3);
    assert_loaded(1, "one", "hello", 5);
}

TEST(a_load_that_is_given_up_frees_what_it_has_read)
{
    begin_large();
}

TEST(pieces_that_are_missing_though_their_row_is_there_are_damage)
{
    begin_large();
    ck_assert_int_eq(
        sqlite3_exec(database.handle, "DELETE FROM piece WHERE part = 5", NULL, NULL, NULL),
        SQLITE_OK);
    ck_assert_int_eq(load->task.apply(&load->task, &database), -EUCLEAN);
    database.error = 0;
}

TEST(a_load_ends_once_its_payloads_are_beyond_the_bound)
{
    new_load(4);
    load->bytes_max = 5;
    apply();
    ck_assert_uint_eq(load->n_read, 2);
    assert_loaded(1, "", large, sizeof(large));
    ck_assert_ptr_null(load->entries[3].job);
}

static void put_result(int64_t number, uint64_t size)
{
    struct payload bytes = PAYLOAD_NULL;
    struct job_row row = JOB_ROW_NULL;

    ck_assert_int_eq(payload_set(&bytes, payload, size), 0);
    ck_assert_int_eq(pieces_write(&database, number, PIECES_RESULT, &bytes), 0);
    row.number = number;
    row.group = "mail";
    row.group_size = 4;
    row.ended_at = 10 - (usec_t)number;
    row.payload_size = size;
    ck_assert_int_eq(job_rows_put(&database, ROWS_ENDED, &row), 0);
    payload_deinit(&bytes);
}

TEST(results_are_loaded_until_they_are_beyond_the_bound)
{
    for (int64_t number = 1; number <= 3; number++)
        put_result(number, 100000);
    new_load(8);
    load->kind = LOAD_RESULTS;
    load->after_key = INT64_MIN;
    load->bytes_max = 150000;
    apply();
    ck_assert_uint_eq(load->n_read, 2);
    ck_assert(load->more);
    ck_assert_int_eq(load->entries[0].number, 3);
    ck_assert_int_eq(load->entries[1].number, 2);
    ck_assert_uint_eq(load->entries[1].job->payload.size, 100000);
    load->after = 2;
    load->after_key = 8;
    apply();
    ck_assert_uint_eq(load->n_read, 1);
    ck_assert(!load->more);
    ck_assert_int_eq(load->entries[0].number, 1);
}

TEST(a_row_is_found_by_its_made_id)
{
    new_load(1);
    load->kind = LOAD_ID;
    load->id = job_number_to_id(database.id_key, 2);
    apply();
    assert_loaded(0, "", large, sizeof(large));
}

TEST(a_row_is_found_by_its_chosen_id)
{
    new_load(1);
    load->kind = LOAD_ID;
    strcpy(load->id.name, "one");
    apply();
    ck_assert_int_eq(load->entries[0].number, 1);
    assert_loaded(0, "one", "hello", 5);
    strcpy(load->id.name, "two");
    apply();
    ck_assert_ptr_null(load->entries[0].job);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
