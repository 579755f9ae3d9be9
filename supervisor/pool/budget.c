/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/budget.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/param.h>

int budget_init(struct budget *budget, void (*decide_again)(struct budget_part *part))
{
    *budget = (struct budget){.decide_again = decide_again,
                              .n_above = calloc(BUDGET_MAX + 1, sizeof(*budget->n_above))};
    list_init(&budget->holders);
    list_init(&budget->lacking);
    list_init(&budget->users);
    list_init(&budget->common.waiters);
    list_init(&budget->common.link);
    list_init(&budget->limited);
    return budget->n_above ? 0 : -ENOMEM;
}

void budget_deinit(struct budget *budget)
{
    free(budget->n_above);
    budget->n_above = NULL;
    index_deinit(&budget->by_id);
}

void budget_part_init(struct budget_part *part)
{
    *part = (struct budget_part){.wanted = 0};
    list_init(&part->holder);
    list_init(&part->waiter);
    list_init(&part->limited);
}

size_t budget_n_pools(const struct budget *budget)
{
    return budget->n_above[0];
}

/* ---- waiters ---- */

static struct budget_user *user_of(struct budget *budget, const struct budget_part *part)
{
    return part->user ? part->user : &budget->common;
}

/* Returns NULL if there is none. */
static struct budget_part *next_waiter(const struct budget *budget)
{
    const struct budget_user *user;

    if (!list_empty(&budget->lacking))
        return list_first_entry(&budget->lacking, struct budget_part, waiter);
    if (list_empty(&budget->users))
        return NULL;
    user = list_first_entry(&budget->users, struct budget_user, link);
    return list_first_entry(&user->waiters, struct budget_part, waiter);
}

static void leave_waiters(struct budget *budget, struct budget_part *part)
{
    struct budget_user *user = user_of(budget, part);

    list_unlink(&part->waiter);
    if (list_empty(&user->waiters))
        list_unlink(&user->link);
}

/* Pools below the level come first. */
static void join_waiters(struct budget *budget, struct budget_part *part)
{
    struct budget_user *user = user_of(budget, part);

    if (part->n_workers < budget->level) {
        list_push_front(&budget->lacking, &part->waiter);
        return;
    }
    list_push_back(&user->waiters, &part->waiter);
    if (!list_linked(&user->link))
        list_push_back(&budget->users, &user->link);
}

/* It is the turn of other users. */
static void end_users_turn(struct budget *budget, struct budget_user *user)
{
    if (!list_linked(&user->link))
        return;
    list_unlink(&user->link);
    list_push_back(&budget->users, &user->link);
}

/* ---- users ---- */

/* Returns NULL for no particular one, and without memory. */
static struct budget_user *find_user(struct budget *budget, uint64_t id)
{
    struct index_entry *entry = id != 0 ? index_find(&budget->by_id, id) : NULL;
    struct budget_user *user;

    if (entry || id == 0)
        return entry ? list_entry(entry, struct budget_user, by_id) : NULL;
    user = calloc(1, sizeof(*user));
    if (!user)
        return NULL;
    list_init(&user->waiters);
    list_init(&user->link);
    index_add(&budget->by_id, &user->by_id, id);
    return user;
}

static void change_user(struct budget *budget, struct budget_part *part, struct budget_user *user)
{
    struct budget_user *before = part->user;
    const bool waits = list_linked(&part->waiter);

    if (user)
        user->n_parts++;
    leave_waiters(budget, part);
    part->user = user;
    if (waits)
        join_waiters(budget, part);
    if (before && --before->n_parts == 0) {
        index_remove(&budget->by_id, &before->by_id);
        free(before);
    }
}

void budget_set_user(struct budget *budget, struct budget_part *part, uint64_t id)
{
    if ((part->user ? part->user->by_id.key : 0) != id)
        change_user(budget, part, find_user(budget, id));
}

/* ---- the level ---- */

static size_t find_ceiling(const struct budget *budget)
{
    if (budget->n_above[budget->level] == 0)
        return BUDGET_MAX; /* there are enough for all */
    return budget->level + (budget->n_granted < budget->total);
}

/* Whether the pool must give workers to those that wait. */
static bool has_too_many(const struct budget *budget, const struct budget_part *part)
{
    return part->n_workers > MIN(part->wanted, budget->level);
}

/* Makes pools with too many workers decide again: now, or by a timer when their turn is over.
 * Waiters that have reached the level go behind those that are below it. */
static void call_in(struct budget *budget)
{
    list_for_each_entry (part, &budget->holders, struct budget_part, holder) {
        if (has_too_many(budget, part))
            budget->decide_again(part);
        if (list_linked(&part->waiter) && part->n_workers >= budget->level) {
            leave_waiters(budget, part);
            join_waiters(budget, part);
        }
    }
}

static size_t n_left(const struct budget *budget)
{
    return budget->total > budget->n_workers ? budget->total - budget->n_workers : 0;
}

/* The next one decides, and then calls the one behind it. */
static void call_waiter(const struct budget *budget)
{
    struct budget_part *next = next_waiter(budget);

    if (n_left(budget) > 0 && next)
        budget->decide_again(next);
}

/* Call it when a pool wants another number of workers, or the total has changed. */
static void find_level(struct budget *budget)
{
    const size_t level = budget->level, before = budget->ceiling;

    while (budget->n_above[budget->level] > 0 &&
           budget->n_granted + budget->n_above[budget->level] <= budget->total)
        budget->n_granted += budget->n_above[budget->level++];
    while (budget->n_granted > budget->total)
        budget->n_granted -= budget->n_above[--budget->level];
    budget->ceiling = find_ceiling(budget);
    if (budget->level == level && budget->ceiling == before)
        return;
    if (budget->ceiling > before)
        list_for_each_entry_safe (part, &budget->limited, struct budget_part, limited) {
            list_unlink(&part->limited);
            join_waiters(budget, part);
        }
    if (next_waiter(budget))
        call_in(budget);
    call_waiter(budget);
}

void budget_set_total(struct budget *budget, size_t total)
{
    budget->total = total;
    find_level(budget);
    call_waiter(budget);
}

void budget_want(struct budget *budget, struct budget_part *part, size_t wanted)
{
    for (; part->wanted < wanted; part->wanted++) {
        budget->n_above[part->wanted]++;
        budget->n_granted += part->wanted < budget->level;
    }
    while (part->wanted > wanted) {
        budget->n_above[--part->wanted]--;
        budget->n_granted -= part->wanted < budget->level;
    }
    find_level(budget);
}

/* ---- workers ---- */

static bool is_next(const struct budget *budget, const struct budget_part *part)
{
    const struct budget_part *next = next_waiter(budget);

    return !next || next == part;
}

static bool others_wait(const struct budget *budget, const struct budget_part *part)
{
    const struct list *users = &budget->users;

    if (next_waiter(budget) != part)
        return next_waiter(budget) != NULL;
    if (part->waiter.next != part->waiter.prev) /* not alone in its list */
        return true;
    return list_empty(&budget->lacking) ? users->next != users->prev : !list_empty(users);
}

/* Whether the pool has had one more than the level for long enough. */
static bool turn_is_over(const struct budget_part *part, usec_t turn, usec_t now)
{
    return now >= usec_add(part->grown_at, turn);
}

static size_t find_limit(const struct budget *budget, const struct budget_part *part, usec_t turn,
                         usec_t now)
{
    const size_t n = part->n_workers, most = MIN(part->wanted, budget->ceiling);

    if (budget->total == 0)
        return BUDGET_MAX;
    if (n > most)
        return others_wait(budget, part) ? most : n;
    if (n > budget->level && others_wait(budget, part) && turn_is_over(part, turn, now))
        return budget->level;
    if (n == most || !is_next(budget, part))
        return n;
    return MIN(n < budget->level ? MIN(most, budget->level) : most, n + n_left(budget));
}

size_t budget_limit(const struct budget *budget, struct budget_part *part, usec_t turn, usec_t now)
{
    part->limit = find_limit(budget, part, turn, now);
    return part->limit;
}

static void set_workers(struct budget *budget, struct budget_part *part, size_t n_workers,
                        usec_t now)
{
    if (n_workers > part->n_workers) {
        part->grown_at = now;
        leave_waiters(budget, part);
        end_users_turn(budget, user_of(budget, part));
    }
    budget->n_workers += n_workers - part->n_workers;
    part->n_workers = n_workers;
    if (n_workers == 0)
        list_unlink(&part->holder);
    else if (!list_linked(&part->holder))
        list_push_back(&budget->holders, &part->holder);
}

/* Puts the pool among the waiters: before those that have reached the level, if it is below it. */
static void wait_for_one(struct budget *budget, struct budget_part *part)
{
    const bool first = !next_waiter(budget);

    join_waiters(budget, part);
    if (first)
        call_in(budget);
}

/* A pool that may have more workers and does not take them now asks again by itself. */
static void queue_up(struct budget *budget, struct budget_part *part)
{
    const bool wants = part->n_workers < part->wanted && part->n_workers >= part->limit;
    const bool is_limited = part->n_workers >= budget->ceiling;

    list_unlink(&part->limited);
    if (!wants || is_limited)
        leave_waiters(budget, part);
    else if (!list_linked(&part->waiter))
        wait_for_one(budget, part);
    if (wants && is_limited)
        list_push_back(&budget->limited, &part->limited);
}

usec_t budget_note(struct budget *budget, struct budget_part *part, size_t n_workers, usec_t turn,
                   usec_t now)
{
    set_workers(budget, part, n_workers, now);
    queue_up(budget, part);
    call_waiter(budget);
    if (budget->total == 0 || !others_wait(budget, part) || !has_too_many(budget, part) ||
        turn_is_over(part, turn, now))
        return USEC_INFINITY;
    return usec_add(part->grown_at, turn);
}

void budget_leave(struct budget *budget, struct budget_part *part)
{
    budget_want(budget, part, 0);
    (void)budget_note(budget, part, 0, 0, 0);
    budget_set_user(budget, part, 0);
}
