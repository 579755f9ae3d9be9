/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/payload.h"
#include "supervisor/store/saved-rows.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"
#include <sys/mman.h>

static struct database database = DATABASE_NULL;
static struct scratch scratch;
static struct saved_rows rows;
static unsigned n_read;

static void setup(void)
{
    scratch_init(&scratch);
    ck_assert_msg(database_open(&database, scratch.path, NULL) == 0, "%s", database.problem);
    rows = (struct saved_rows){.database = &database};
    n_read = 0;
}

static void teardown(void)
{
    saved_rows_deinit(&rows);
    database_close(&database, false);
    scratch_deinit(&scratch);
}

static void add(const char *kind, uint64_t number)
{
    struct payload payload = PAYLOAD_NULL;
    struct saved_writer row = {0};

    ck_assert_int_eq(payload_set(&payload, "data", 4), 0);
    saved_put_number(&row, number);
    ck_assert_int_eq(saved_rows_add(&rows, kind, &row, number == 2 ? NULL : &payload), 0);
    payload_deinit(&payload);
    free(row.bytes);
}

static int read_row(void *userdata, struct saved_reader *row)
{
    const uint64_t number = saved_get_number(row);

    ck_assert_uint_eq(number, ++n_read);
    ck_assert_uint_eq(row->payload_size, number == 2 ? 0 : 4);
    ck_assert_mem_eq(row->payload, "data", row->payload_size);
    return number == 3 ? -EBADMSG : 0;
}

TEST(rows_of_a_kind_are_read_in_their_order_and_those_refused_are_counted)
{
    uint64_t n_refused = 0;

    ck_assert_int_eq(saved_rows_create(&database), 0);
    add("one", 1);
    add("other", 7);
    add("one", 2);
    add("one", 3);
    add("one", 4);
    ck_assert_int_eq(saved_rows_flush(&rows), 0);
    ck_assert_int_eq(saved_rows_scan(&database, "one", read_row, NULL, &n_refused), 0);
    ck_assert_uint_eq(n_read, 4);
    ck_assert_uint_eq(n_refused, 1);
}

/* Its number and a payload of so many bytes, on the heap or in a file. */
static void add_bytes(uint64_t number, size_t size, bool blob)
{
    struct payload payload = PAYLOAD_NULL;
    struct saved_writer row = {0};
    uint8_t *bytes = calloc(1, size);
    int fd;

    ck_assert_ptr_nonnull(bytes);
    if (blob) {
        fd = memfd_create("blob", MFD_CLOEXEC);
        ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
        payload_set_blob(&payload, fd, size);
    } else {
        ck_assert_int_eq(payload_set(&payload, bytes, size), 0);
    }
    saved_put_number(&row, number);
    saved_put_number(&row, size);
    ck_assert_int_eq(saved_rows_add(&rows, "sized", &row, &payload), 0);
    payload_deinit(&payload);
    free(row.bytes);
    free(bytes);
}

static int read_sized(void *userdata, struct saved_reader *row)
{
    ck_assert_uint_eq(saved_get_number(row), ++n_read);
    ck_assert_uint_eq(saved_get_number(row), row->payload_size);
    return 0;
}

static int64_t count_rows(void)
{
    sqlite3_stmt *query;
    int64_t n;

    ck_assert_int_eq(
        sqlite3_prepare_v2(database.handle, "SELECT count(*) FROM saved", -1, &query, NULL),
        SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(query), SQLITE_ROW);
    n = sqlite3_column_int64(query, 0);
    ck_assert_int_eq(sqlite3_finalize(query), SQLITE_OK);
    return n;
}

TEST(small_rows_share_one_of_the_database_and_keep_their_order_among_large_ones)
{
    uint64_t number = 0, n_refused = 0;

    ck_assert_int_eq(saved_rows_create(&database), 0);
    for (unsigned i = 0; i < 1000; i++)
        add_bytes(++number, 200, false);
    add_bytes(++number, 100000, true);
    add_bytes(++number, 0, false);
    add_bytes(++number, 100000, false);
    for (unsigned i = 0; i < 1000; i++)
        add_bytes(++number, i, false);
    ck_assert_int_eq(saved_rows_flush(&rows), 0);
    ck_assert_int_lt(count_rows(), 20);
    ck_assert_int_eq(saved_rows_scan(&database, "sized", read_sized, NULL, &n_refused), 0);
    ck_assert_uint_eq(n_read, number);
    ck_assert_uint_eq(n_refused, 0);
}

TEST(more_kinds_than_there_are_packs_are_saved_as_well)
{
    static char kinds[SAVED_PACKS_MAX + 2][16];

    ck_assert_int_eq(saved_rows_create(&database), 0);
    for (unsigned i = 0; i < SAVED_PACKS_MAX + 2; i++) {
        (void)snprintf(kinds[i], sizeof(kinds[i]), "kind %u", i);
        add(kinds[i], 1);
        add(kinds[i], 2);
    }
    ck_assert_int_eq(saved_rows_flush(&rows), 0);
    for (unsigned i = 0; i < SAVED_PACKS_MAX + 2; i++) {
        uint64_t n_refused = 0;

        n_read = 0;
        ck_assert_int_eq(saved_rows_scan(&database, kinds[i], read_row, NULL, &n_refused), 0);
        ck_assert_uint_eq(n_read, 2);
    }
}

TEST(of_a_pack_that_is_cut_off_the_rest_is_refused)
{
    uint64_t n_refused = 0;

    ck_assert_int_eq(saved_rows_create(&database), 0);
    for (unsigned i = 1; i <= 10; i++)
        add_bytes(i, 10, false);
    ck_assert_int_eq(saved_rows_flush(&rows), 0);
    ck_assert_int_eq(sqlite3_exec(database.handle,
                                  "UPDATE saved SET fields = substr(fields, 1, 100)", NULL, NULL,
                                  NULL),
                     SQLITE_OK);
    ck_assert_int_eq(saved_rows_scan(&database, "sized", read_sized, NULL, &n_refused), 0);
    ck_assert_uint_eq(n_read, 2); /* of 42 bytes each */
    ck_assert_uint_eq(n_refused, 8);
}

TEST(what_a_version_without_packs_has_saved_is_read)
{
    static const char sql[] = "INSERT INTO saved (kind, fields, payload)"
                              " VALUES ('one', x'0100000000000000', x'64617461')";
    uint64_t n_refused = 0;

    ck_assert_int_eq(saved_rows_create(&database), 0);
    ck_assert_int_eq(sqlite3_exec(database.handle, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(saved_rows_scan(&database, "one", read_row, NULL, &n_refused), 0);
    ck_assert_uint_eq(n_read, 1);
    ck_assert_uint_eq(n_refused, 0);
}

TEST(a_version_that_had_no_such_rows_has_none)
{
    uint64_t n_refused = 0;

    ck_assert_int_eq(saved_rows_create(&database), 0);
    ck_assert_int_eq(saved_rows_create(&database), 0); /* idempotent */
    ck_assert_int_eq(saved_rows_scan(&database, "one", read_row, NULL, &n_refused), 0);
    ck_assert_uint_eq(n_read, 0);
}

const struct suite suite = {.name = "saved-rows", .setup = setup, .teardown = teardown};
