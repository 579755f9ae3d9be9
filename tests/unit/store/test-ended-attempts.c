/* SPDX-License-Identifier: MIT */
#include "supervisor/store/ended-attempts.h"
#include "tests/unit/suite.h"
#include <check.h>
#include <string.h>

static struct kept_attempt memory[KEPT_ATTEMPTS_MAX];
static struct ended_attempts attempts;

static void set_up(void)
{
    memset(memory, 0, sizeof(memory));
    ended_attempts_init(&attempts, memory);
}

static void crash(void)
{
    memset(&attempts, 0xee, sizeof(attempts));
    ended_attempts_init(&attempts, memory);
}

START_TEST(the_next_supervisor_finds_an_attempt_that_was_not_removed)
{
    ck_assert_ptr_nonnull(ended_attempts_add(&attempts, 30, 3, 2));
    ended_attempts_remove(&attempts, ended_attempts_add(&attempts, 20, 1, 0));
    ck_assert_ptr_nonnull(ended_attempts_add(&attempts, 10, 1, 0));
    ck_assert(!ended_attempts_has(&attempts, 30));
    crash();
    ck_assert(ended_attempts_has(&attempts, 10) && ended_attempts_has(&attempts, 30));
    ck_assert(!ended_attempts_has(&attempts, 20) && !ended_attempts_has(&attempts, 31));
    struct kept_attempt *entry = ended_attempts_take(&attempts, 30);
    ck_assert_ptr_nonnull(entry);
    ck_assert_uint_eq(entry->attempt, 3);
    ck_assert_uint_eq(entry->n_failed, 2);
    ck_assert_ptr_null(ended_attempts_take(&attempts, 30));
    ended_attempts_put_back(&attempts, entry);
    ck_assert_ptr_eq(ended_attempts_take(&attempts, 30), entry);
}
END_TEST

START_TEST(attempts_that_nobody_takes_are_forgotten)
{
    (void)ended_attempts_add(&attempts, 10, 1, 0);
    crash();
    ended_attempts_settle(&attempts);
    crash();
    ck_assert(!ended_attempts_has(&attempts, 10));
}
END_TEST

START_TEST(a_full_table_takes_no_more_until_there_is_room)
{
    for (int64_t i = 1; i < KEPT_ATTEMPTS_MAX; i++)
        ck_assert_ptr_nonnull(ended_attempts_add(&attempts, i, 1, 0));
    struct kept_attempt *last = ended_attempts_add(&attempts, 9999, 1, 0);
    ck_assert_ptr_null(ended_attempts_add(&attempts, 10000, 1, 0));
    ended_attempts_remove(&attempts, last);
    ck_assert_ptr_nonnull(ended_attempts_add(&attempts, 10000, 1, 0));
    crash();
    ck_assert(ended_attempts_has(&attempts, 10000) && !ended_attempts_has(&attempts, 9999));
    ck_assert_uint_eq(attempts.n_earlier, KEPT_ATTEMPTS_MAX);
}
END_TEST

START_TEST(without_memory_nothing_is_kept)
{
    ended_attempts_init(&attempts, NULL);
    ck_assert_ptr_null(ended_attempts_add(&attempts, 1, 1, 0));
    ck_assert(!ended_attempts_has(&attempts, 1));
    ck_assert_ptr_null(ended_attempts_take(&attempts, 1));
    ended_attempts_settle(&attempts);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_next_supervisor_finds_an_attempt_that_was_not_removed,
        attempts_that_nobody_takes_are_forgotten,
        a_full_table_takes_no_more_until_there_is_room,
        without_memory_nothing_is_kept,
    };

    return suite_run("ended-attempts", set_up, NULL, tests, ELEMENTS(tests));
}
