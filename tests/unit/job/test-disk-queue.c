/* SPDX-License-Identifier: MIT */
#include "supervisor/job/queue.h"
#include "tests/unit/suite.h"
#include <malloc.h>

static struct disk_queue queue;

static void setup(void)
{
    disk_queue_init(&queue);
}

static void teardown(void)
{
    disk_queue_deinit(&queue);
    ck_assert_uint_eq(disk_queue_priority(&queue), QUEUE_PRIORITIES);
}

static void push_back(unsigned priority, int64_t number)
{
    ck_assert_int_eq(disk_queue_push_back(&queue, priority, number), 0);
}

static void push_front(unsigned priority, int64_t number)
{
    ck_assert_int_eq(disk_queue_push_front(&queue, priority, number), 0);
}

static int64_t pop(void)
{
    struct disk_number next;

    ck_assert_uint_eq(disk_queue_peek(&queue, &next, 1), 1);
    disk_queue_remove(&queue, &next);
    return next.number;
}

TEST(numbers_come_by_priority_then_in_their_order)
{
    push_back(32, 1);
    push_back(63, 2);
    push_back(32, 3);
    push_back(0, 4);
    ck_assert_uint_eq(disk_queue_priority(&queue), 0);
    ck_assert_int_eq(pop(), 4);
    ck_assert_uint_eq(disk_queue_priority(&queue), 32);
    ck_assert_int_eq(pop(), 1);
    ck_assert_int_eq(pop(), 3);
    ck_assert_int_eq(pop(), 2);
    ck_assert_uint_eq(disk_queue_priority(&queue), QUEUE_PRIORITIES);
}

TEST(numbers_pushed_to_the_front_come_first_across_blocks)
{
    enum {
        N = 5000
    };

    for (int64_t i = 1; i <= N; i++) {
        push_back(5, i);
        push_front(5, -i);
    }
    for (int64_t i = N; i >= 1; i--)
        ck_assert_int_eq(pop(), -i);
    for (int64_t i = 1; i <= N; i++)
        ck_assert_int_eq(pop(), i);
    ck_assert_uint_eq(disk_queue_priority(&queue), QUEUE_PRIORITIES);
}

TEST(a_number_leaves_from_any_place_and_an_absent_one_changes_nothing)
{
    enum {
        N = 2000
    };

    for (int64_t i = 0; i < N; i++)
        push_back(5, i);
    for (int64_t i = 1; i < N; i += 2)
        disk_queue_remove(&queue, &(struct disk_number){(i * 7) % N, 5});
    disk_queue_remove(&queue, &(struct disk_number){N, 5});
    disk_queue_remove(&queue, &(struct disk_number){0, 6});
    for (int64_t i = 0; i < N; i += 2)
        ck_assert_int_eq(pop(), i);
    ck_assert_uint_eq(disk_queue_priority(&queue), QUEUE_PRIORITIES);
}

/* A queue of one that is filled and emptied in turns walks through its block. */
TEST(a_backlog_that_is_emptied_again_and_again_keeps_its_order)
{
    push_back(7, 0);
    for (int64_t i = 1; i <= 3000; i++) {
        push_back(7, i);
        ck_assert_int_eq(pop(), i - 1);
    }
    ck_assert_int_eq(pop(), 3000);
}

TEST(an_appended_queue_comes_behind_by_priority)
{
    struct disk_queue more;

    disk_queue_init(&more);
    push_back(32, 1);
    push_back(63, 2);
    for (unsigned priority = 0; priority < QUEUE_PRIORITIES; priority += 32)
        ck_assert_int_eq(disk_queue_push_back(&more, priority, 10 + priority), 0);
    disk_queue_append(&queue, &more);
    ck_assert_uint_eq(disk_queue_priority(&more), QUEUE_PRIORITIES);
    disk_queue_deinit(&more);
    push_back(32, 3);
    ck_assert_int_eq(pop(), 10);
    ck_assert_int_eq(pop(), 1);
    ck_assert_int_eq(pop(), 42);
    ck_assert_int_eq(pop(), 3);
    ck_assert_int_eq(pop(), 2);
    ck_assert_uint_eq(disk_queue_priority(&queue), QUEUE_PRIORITIES);
}

TEST(numbers_that_were_looked_at_stay_until_they_are_removed)
{
    struct disk_number next[1000];

    for (int i = 0; i < 1000; i++)
        push_back(32, i);
    push_back(40, 1000);
    ck_assert_uint_eq(disk_queue_peek(&queue, next, 1000), 1000);
    push_front(32, -1);
    for (int i = 0; i < 999; i++)
        disk_queue_remove(&queue, &next[i]);
    ck_assert_int_eq(pop(), -1);
    ck_assert_int_eq(pop(), 999);
    ck_assert_int_eq(pop(), 1000);
}

TEST(a_number_takes_at_most_nine_bytes)
{
    enum {
        N = 200000
    };
    const struct mallinfo2 before = mallinfo2();
    struct mallinfo2 after;

    for (int64_t i = 0; i < N; i++)
        push_back(32, i);
    after = mallinfo2();
    ck_assert_uint_le((after.uordblks - before.uordblks) / N, 9);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
