/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/children.h"
#include "tests/unit/suite.h"

static struct children children;

TEST(a_child_is_found_by_its_pid_until_it_is_removed)
{
    children_add(&children, 100, 7, true);
    children_add(&children, 101, 8, false);
    ck_assert_uint_eq(children_find(&children, 100)->id, 7);
    ck_assert(children_find(&children, 100)->contained);
    ck_assert(!children_find(&children, 101)->contained);
    ck_assert_ptr_null(children_find(&children, 102));
    children_remove(&children, 100);
    ck_assert_ptr_null(children_find(&children, 100));
    ck_assert_uint_eq(children_find(&children, 101)->id, 8);
    children_remove(&children, 100); /* harmless */
    ck_assert_uint_eq(children.pids.n, 1);
}

TEST(pids_in_one_bucket_are_kept_apart)
{
    for (int i = 0; i < 5; i++)
        children_add(&children, 1 + i * ID_TABLE_BUCKETS, (uint64_t)i, false);
    children_remove(&children, 1 + 2 * ID_TABLE_BUCKETS);
    for (int i = 0; i < 5; i++) {
        const struct child *child = children_find(&children, 1 + i * ID_TABLE_BUCKETS);
        ck_assert((i == 2) == !child);
        ck_assert(!child || child->id == (uint64_t)i);
    }
}

TEST(it_holds_so_many_and_places_are_used_again)
{
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < ID_TABLE_MAX; i++) {
            ck_assert(children_have_room(&children) == (i < ID_TABLE_MAX - 1));
            children_add(&children, i + 1 + round, (uint64_t)i, false);
        }
        ck_assert(!children_have_room(&children));
        for (int i = 0; i < ID_TABLE_MAX; i++) {
            ck_assert_uint_eq(children_find(&children, i + 1 + round)->id, (uint64_t)i);
            children_remove(&children, i + 1 + round);
        }
        ck_assert_uint_eq(children.pids.n, 0);
    }
    ck_assert_uint_eq(children.pids.n_touched, ID_TABLE_MAX);
}
