/* SPDX-License-Identifier: MIT */
#include "supervisor/store/ended-attempts.h"
#include "tests/unit/suite.h"

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

TEST(the_next_supervisor_finds_an_attempt_that_was_not_removed)
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

TEST(attempts_that_nobody_takes_are_forgotten)
{
    (void)ended_attempts_add(&attempts, 10, 1, 0);
    crash();
    ended_attempts_settle(&attempts);
    crash();
    ck_assert(!ended_attempts_has(&attempts, 10));
}

TEST(an_attempt_is_left_as_by_the_last_supervisor)
{
    ended_attempts_leave(&attempts, 10, 3, 2);
    ck_assert(ended_attempts_has(&attempts, 10));
    crash();
    ck_assert_uint_eq(ended_attempts_take(&attempts, 10)->attempt, 3);
}

TEST(a_full_table_takes_no_more_until_there_is_room)
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

TEST(without_memory_nothing_is_kept)
{
    ended_attempts_init(&attempts, NULL);
    ck_assert_ptr_null(ended_attempts_add(&attempts, 1, 1, 0));
    ck_assert(!ended_attempts_has(&attempts, 1));
    ck_assert_ptr_null(ended_attempts_take(&attempts, 1));
    ended_attempts_settle(&attempts);
}

/* Checks what joining the entries {attempt, n_failed} of a job gives, in any order, and after a
 * crash. */
static void check_join(const uint32_t entries[][2], size_t n, const uint32_t wanted[2])
{
    for (unsigned order = 0; order < 2; order++) {
        set_up();
        for (size_t i = 0; i < n; i++) {
            const uint32_t *entry = entries[order == 0 ? i : n - 1 - i];

            (void)ended_attempts_add(&attempts, 7, entry[0], entry[1]);
        }
        (void)ended_attempts_add(&attempts, 8, 9, 9);
        crash();
        for (unsigned times = 0; times < 2; times++) {
            struct kept_attempt *last = ended_attempts_join(&attempts, 7, NULL, UINT32_MAX);

            ck_assert_ptr_nonnull(last);
            ck_assert_uint_eq(last->attempt, wanted[0]);
            ck_assert_uint_eq(last->n_failed, wanted[1]);
            crash();
            ck_assert_uint_eq(attempts.n_earlier, 2);
        }
    }
}
#define CHECK_JOIN(attempt, n_failed, ...)                                                         \
    check_join((const uint32_t[][2]){__VA_ARGS__},                                                 \
               sizeof((const uint32_t[][2]){__VA_ARGS__}) / sizeof(uint32_t[2]),                   \
               (const uint32_t[2]){attempt, n_failed})

TEST(D4_an_attempt_counts_once_however_often_it_was_kept)
{
    CHECK_JOIN(1, 1, {1, 1});
    CHECK_JOIN(1, 1, {1, 1}, {1, 1});
    CHECK_JOIN(1, 1, {1, 1}, {1, 0});
    CHECK_JOIN(2, 2, {2, 2}, {2, 2}, {2, 2});
}

TEST(D4_an_attempt_counts_those_before_it)
{
    CHECK_JOIN(2, 2, {1, 1}, {2, 2});
    CHECK_JOIN(2, 1, {1, 1}, {2, 1});
    CHECK_JOIN(3, 3, {1, 1}, {1, 1}, {3, 3});
}

TEST(D4_an_attempt_that_goes_on_has_not_ended)
{
    (void)ended_attempts_add(&attempts, 7, 1, 1);
    (void)ended_attempts_add(&attempts, 7, 2, 2);
    crash();
    struct kept_attempt *mine = ended_attempts_add(&attempts, 7, 2, 2);
    ck_assert_ptr_eq(ended_attempts_join(&attempts, 7, mine, 2), mine);
    ck_assert_uint_eq(mine->n_failed, 2);
    crash();
    ck_assert_uint_eq(attempts.n_earlier, 1);
    ck_assert_ptr_null(ended_attempts_join(&attempts, 7, NULL, 2));
    crash();
    ck_assert_uint_eq(attempts.n_earlier, 0);
}

const struct suite suite = {.setup = set_up};
