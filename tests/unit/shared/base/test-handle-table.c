/* SPDX-License-Identifier: MIT */
#include "shared/base/handle-table.h"
#include "tests/unit/suite.h"

#define MANY 1000

static struct handle_table table = HANDLE_TABLE_NULL;
static int objects[MANY];
static uint64_t handles[MANY];

static void add_many(void)
{
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(handle_table_add(&table, &objects[i], &handles[i]), 0);
}

static void tear_down(void)
{
    handle_table_deinit(&table);
}

TEST(each_handle_finds_its_object)
{
    add_many();
    for (int i = 0; i < MANY; i++) {
        ck_assert_uint_ne(handles[i], 0);
        ck_assert_ptr_eq(handle_table_get(&table, handles[i]), &objects[i]);
    }
}

TEST(what_never_was_is_not_found)
{
    ck_assert_ptr_null(handle_table_get(&table, 0));
    add_many();
    ck_assert_ptr_null(handle_table_get(&table, 0));
    ck_assert_ptr_null(handle_table_get(&table, handles[0] + (UINT64_C(1) << 32)));
    ck_assert_ptr_null(handle_table_get(&table, UINT64_C(1) << 32 | UINT32_MAX));
    ck_assert_ptr_null(handle_table_get(&table, UINT64_MAX));
    /* Entries that were allocated and never used: their generation is 0. */
    ck_assert_ptr_null(handle_table_get(&table, MANY));
}

TEST(the_handle_of_a_removed_object_never_finds_its_successor)
{
    uint64_t handle;

    add_many();
    handle_table_remove(&table, handles[7]);
    ck_assert_ptr_null(handle_table_get(&table, handles[7]));
    ck_assert_int_eq(handle_table_add(&table, &objects[7], &handle), 0);
    ck_assert_uint_eq((uint32_t)handle, (uint32_t)handles[7]);
    ck_assert_ptr_null(handle_table_get(&table, handles[7]));
    ck_assert_ptr_eq(handle_table_get(&table, handle), &objects[7]);
}

TEST(places_are_used_again_before_the_table_grows)
{
    add_many();
    uint32_t n_entries = table.n_entries;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++)
            handle_table_remove(&table, handles[i]);
        add_many();
    }
    ck_assert_uint_eq(table.n_entries, n_entries);
}

TEST(a_walk_meets_every_object_once)
{
    size_t cursor = 0, n = 0;
    int *object;

    add_many();
    for (int i = 0; i < MANY; i += 2)
        handle_table_remove(&table, handles[i]);
    while ((object = handle_table_next(&table, &cursor))) {
        ck_assert_int_eq((object - objects) % 2, 1);
        ck_assert_int_eq((*object)++, 0);
        n++;
    }
    ck_assert_uint_eq(n, MANY / 2);
}

TEST(a_generation_that_wraps_around_is_1_again_so_that_handles_stay_positive)
{
    uint64_t handle;

    ck_assert_int_eq(handle_table_add(&table, &objects[0], &handle), 0);
    handle_table_remove(&table, handle);
    table.entries[0].generation = INT32_MAX;
    ck_assert_int_eq(handle_table_add(&table, &objects[0], &handle), 0);
    ck_assert_uint_eq(handle, UINT64_C(1) << 32);
}

const struct suite suite = {.teardown = tear_down};
