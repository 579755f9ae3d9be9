/* SPDX-License-Identifier: MIT */
#include "tests/unit/succession/memory-saver.h"
#include "tests/unit/suite.h"

static struct memory_saver saver;
static struct saved_writer row;

static void setup(void)
{
    memory_saver_init(&saver);
    row = (struct saved_writer){0};
}

static void teardown(void)
{
    memory_saver_deinit(&saver);
}

static struct saved_reader read_back(void)
{
    saved_add(&saver.saver, "kind", &row, NULL);
    ck_assert_ptr_null(row.bytes);
    return memory_saver_read(&saver, saver.n_rows - 1, "kind");
}

TEST(fields_are_read_as_they_were_written)
{
    char text[4];
    size_t begin, size;

    saved_put_number(&row, UINT64_MAX);
    saved_put_text(&row, "abc");
    saved_put_text(&row, NULL);
    saved_put_text(&row, "");
    begin = saved_begin(&row);
    saved_put_number(&row, 7);
    saved_end(&row, begin);
    saved_put_bytes(&row, "a\0b", 3);
    struct saved_reader reader = read_back();
    ck_assert_uint_eq(saved_get_number(&reader), UINT64_MAX);
    saved_get_text(&reader, text, sizeof(text));
    ck_assert_str_eq(text, "abc");
    ck_assert_ptr_null(saved_get_string(&reader));
    ck_assert_str_eq(saved_get_string(&reader), "");
    struct saved_reader inner = saved_get_fields(&reader);
    ck_assert_uint_eq(saved_get_number(&inner), 7);
    ck_assert(!saved_has_more(&inner));
    ck_assert_mem_eq(saved_get_bytes(&reader, &size), "a\0b", 3);
    ck_assert_uint_eq(size, 3);
    ck_assert(!saved_has_more(&reader) && !reader.damaged);
}

TEST(fields_that_an_older_version_has_not_written_are_zero)
{
    struct saved_reader reader = read_back();
    char text[4] = "x";
    size_t size;

    ck_assert_uint_eq(saved_get_number(&reader), 0);
    ck_assert_uint_eq(saved_get_below(&reader, 3), 0);
    ck_assert_ptr_null(saved_get_string(&reader));
    saved_get_text(&reader, text, sizeof(text));
    ck_assert_str_eq(text, "");
    ck_assert_ptr_nonnull(saved_get_bytes(&reader, &size));
    ck_assert_uint_eq(size, 0);
    ck_assert(!reader.damaged);
}

TEST(fields_that_a_newer_version_has_added_are_not_seen)
{
    saved_put_number(&row, 1);
    saved_put_text(&row, "of the future");
    struct saved_reader reader = read_back();
    ck_assert_uint_eq(saved_get_number(&reader), 1);
    ck_assert(!reader.damaged);
}

TEST(a_number_out_of_range_is_damage_and_ends_the_row)
{
    saved_put_number(&row, 4);
    saved_put_number(&row, 5);
    struct saved_reader reader = read_back();
    ck_assert_uint_eq(saved_get_below(&reader, 3), 0);
    ck_assert(reader.damaged);
    ck_assert_uint_eq(saved_get_number(&reader), 0);
}

TEST(a_text_that_does_not_fit_is_damage)
{
    char text[3] = "x";

    saved_put_text(&row, "abc");
    struct saved_reader reader = read_back();
    saved_get_text(&reader, text, sizeof(text));
    ck_assert_str_eq(text, "");
    ck_assert(reader.damaged);
}

TEST(a_text_with_a_nul_within_or_without_one_is_damage)
{
    for (size_t size = 2; size <= 3; size++) {
        saved_put_bytes(&row, size == 2 ? "ab" : "a\0", size);
        struct saved_reader reader = read_back();
        ck_assert_ptr_null(saved_get_string(&reader));
        ck_assert(reader.damaged);
    }
}

static void check_damage(void *userdata, struct saved_reader *reader)
{
    char text[8];

    (void)saved_get_number(reader);
    saved_get_text(reader, text, sizeof(text));
    struct saved_reader inner = saved_get_fields(reader);
    while (saved_has_more(&inner))
        (void)saved_get_string(&inner);
    ck_assert(reader->at <= reader->end);
}

TEST(damaged_rows_are_never_read_beyond_their_ends)
{
    saved_put_number(&row, 1);
    saved_put_text(&row, "abc");
    size_t begin = saved_begin(&row);
    saved_put_text(&row, "one");
    saved_put_text(&row, "two");
    saved_end(&row, begin);
    (void)read_back();
    memory_saver_damage(&saver, 0, check_damage, NULL);
}

TEST(a_row_that_found_no_memory_is_not_saved)
{
    row.failed = true;
    saved_add(&saver.saver, "kind", &row, NULL);
    ck_assert_int_eq(saver.saver.error, -ENOMEM);
    ck_assert_uint_eq(saver.n_rows, 0);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
