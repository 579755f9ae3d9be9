/* SPDX-License-Identifier: MIT */
/* PoolMax=: pools that grow to their limits, in the order in which they are told to decide. */
#include "supervisor/pool/budget.h"
#include "tests/unit/suite.h"
#include <stdbool.h>

#define N    40
#define TURN (30 * USEC_PER_SEC)

static struct budget budget;
static struct budget_part parts[N];
static bool due[N];
static size_t wanted[N];
static usec_t now;

static void decide_again(struct budget_part *part)
{
    due[part - parts] = true;
}

static void begin(size_t total)
{
    ck_assert_int_eq(budget_init(&budget, decide_again), 0);
    budget_set_total(&budget, total);
    now = USEC_PER_SEC;
    for (size_t i = 0; i < N; i++) {
        budget_part_init(&parts[i]);
        wanted[i] = 0;
    }
}

/* Returns when the pool is to decide again. A pool that wants less keeps its workers for now. */
static usec_t decide(size_t i)
{
    struct budget_part *part = &parts[i];
    size_t limit, n = part->n_workers;

    budget_want(&budget, part, wanted[i]);
    limit = budget_limit(&budget, part, TURN, now);
    if (n < wanted[i])
        n = wanted[i];
    if (limit > part->n_workers)
        ck_assert_uint_le(budget.n_workers + limit - part->n_workers, budget.total);
    return budget_note(&budget, part, n < limit ? n : limit, TURN, now);
}

static void settle(void)
{
    bool any = true;

    for (unsigned rounds = 0; any; rounds++) {
        ck_assert_uint_lt(rounds, 1000);
        any = false;
        for (size_t i = 0; i < N; i++) {
            if (!due[i])
                continue;
            due[i] = false;
            any = true;
            (void)decide(i);
        }
    }
}

static void want(size_t i, size_t n)
{
    wanted[i] = n;
    due[i] = true;
    settle();
}

/* All timers fire. */
static void end_turns(void)
{
    now += TURN;
    for (size_t i = 0; i < N; i++)
        due[i] |= parts[i].n_workers > 0;
    settle();
}

static size_t level_of(size_t total)
{
    size_t level = 0;

    for (;; level++) {
        size_t sum = 0;
        bool more = false;

        for (size_t i = 0; i < N; i++) {
            sum += wanted[i] < level + 1 ? wanted[i] : level + 1;
            more |= wanted[i] > level;
        }
        if (!more || sum > total)
            return level;
    }
}

TEST(E2_pools_have_what_they_want_up_to_a_common_level)
{
    static const size_t wants[] = {1, 2, 9, 9};

    begin(12);
    for (size_t i = 0; i < 4; i++)
        want(i, wants[i]);
    ck_assert_uint_eq(parts[0].n_workers, 1);
    ck_assert_uint_eq(parts[1].n_workers, 2);
    ck_assert_uint_ge(parts[2].n_workers, 4);
    ck_assert_uint_ge(parts[3].n_workers, 4);
    ck_assert_uint_eq(budget.n_workers, 12);
    want(3, 0);
    want(2, 9);
    ck_assert_uint_eq(parts[2].n_workers, 9);
    ck_assert_uint_eq(parts[3].n_workers, 0);
    budget_deinit(&budget);
}

TEST(E2_a_pool_keeps_what_no_other_one_waits_for)
{
    begin(8);
    want(0, 8);
    want(0, 1);
    ck_assert_uint_eq(parts[0].n_workers, 8);
    want(1, 3);
    ck_assert_uint_ge(parts[1].n_workers, 3);
    ck_assert_uint_ge(parts[0].n_workers, 1);
    budget_deinit(&budget);
}

TEST(E2_more_pools_than_workers_have_them_in_turns)
{
    unsigned n_turns[N] = {0};

    begin(3);
    for (size_t i = 0; i < N; i++)
        want(i, 2);
    for (unsigned round = 0; round < 10 * N / 3; round++) {
        for (size_t i = 0; i < N; i++) {
            due[i] |= parts[i].n_workers > 0;
            n_turns[i] += parts[i].n_workers > 0;
        }
        now += TURN / 2; /* not over */
        settle();
        now -= TURN / 2;
        end_turns();
        ck_assert_uint_eq(budget.n_workers, 3);
    }
    for (size_t i = 0; i < N; i++)
        ck_assert_uint_ge(n_turns[i], 9);
    budget_deinit(&budget);
}

TEST(a_user_with_many_pools_leaves_turns_to_one_with_a_single_pool)
{
    unsigned n_turns[N] = {0};

    begin(4);
    for (size_t i = 0; i < N; i++) {
        budget_set_user(&budget, &parts[i], i == N - 1 ? 2 : 1);
        want(i, 2);
    }
    for (unsigned round = 0; round < N; round++) {
        end_turns();
        for (size_t i = 0; i < N; i++)
            n_turns[i] += parts[i].n_workers > 0;
        ck_assert_uint_eq(budget.n_workers, 4);
    }
    ck_assert_uint_ge(n_turns[N - 1], N / 2);
    for (size_t i = 0; i < N - 1; i++)
        ck_assert_uint_ge(n_turns[i], 2);
    for (size_t i = 0; i < N; i++)
        budget_leave(&budget, &parts[i]);
    budget_deinit(&budget);
}

TEST(E2_a_pool_that_is_gone_leaves_its_workers_to_others)
{
    begin(2);
    want(0, 2);
    want(1, 2);
    budget_leave(&budget, &parts[0]);
    wanted[0] = 0;
    settle();
    ck_assert_uint_eq(parts[1].n_workers, 2);
    ck_assert_uint_eq(budget_n_pools(&budget), 1);
    budget_deinit(&budget);
}

/* With several users, some pools have their shares only in the next turns. */
static void change_at_random(unsigned n_changes, unsigned n_users)
{
    uint64_t random = 88172645463325252u;

    begin(50);
    for (unsigned n = 0; n < n_changes; n++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if (n % 1000 == 999)
            budget_set_total(&budget, 1 + random % 90);
        budget_set_user(&budget, &parts[random % N], (random >> 52) % n_users);
        want(random % N, random >> 32 & 1 ? 0 : (random >> 40) % 12);
        for (unsigned turn = 0; turn < n_users; turn++)
            end_turns();
        ck_assert_uint_le(budget.n_workers, budget.total);
        for (size_t i = 0; i < N; i++) {
            const size_t level = level_of(budget.total);
            const size_t fair = wanted[i] < level ? wanted[i] : level;

            ck_assert_uint_ge(parts[i].n_workers, fair);
        }
    }
    for (size_t i = 0; i < N; i++)
        budget_leave(&budget, &parts[i]);
    budget_deinit(&budget);
}

TEST(E2_any_change_ends_with_max_min_fair_shares)
{
    change_at_random(20000, 1);
    change_at_random(5000, 4);
}
