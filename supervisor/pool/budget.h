/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Shares PoolMax= among the pools of a group by max-min fairness: each pool may have the workers
 * that it wants up to a level, which is as high as the sum allows. The workers that are left after
 * that are too few for one more in each pool, so pools take turns to have one more: users in turn,
 * and of each user its pools in turn, so that no user starves others by many pools. If no other
 * pool waits for workers, a pool keeps those that it has.
 *
 * Its owner calls budget_want() before each decision about a pool, budget_limit() for it, and
 * budget_note() afterwards. No call scans all pools: those with workers are at most PoolMax=, and
 * only these are looked at, when pools begin to wait or the level changes.
 */

#include "shared/base/clock.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUDGET_MAX 4096u

/* The pools of a user. */
struct budget_user {
    struct index_entry by_id;
    unsigned n_parts;
    struct list waiters; /* struct budget_part.waiter */
    struct list link;    /* in struct budget.users, if there are waiters */
};

/* A pool keeps this. */
struct budget_part {
    size_t wanted;    /* workers that it has a use for, up to BUDGET_MAX */
    size_t n_workers; /* that it has, with those that are to stop and still run */
    size_t limit;     /* the last one */
    usec_t grown_at;
    struct budget_user *user; /* NULL = of no particular one */
    struct list holder;       /* of struct budget.holders, if it has workers */
    struct list waiter;  /* of struct budget.lacking or budget_user.waiters, if no worker is left */
    struct list limited; /* of struct budget.limited */
};

struct budget {
    size_t total;                               /* PoolMax=; 0 = not shared */
    void (*decide_again)(struct budget_part *); /* the pool's limit may have changed */
    unsigned *n_above;                          /* [k]: pools that want more than k workers */
    size_t level;
    size_t ceiling;   /* up to where a pool may have workers: the level, or one more */
    size_t n_granted; /* sum of what the pools want up to the level; at most `total` */
    size_t n_workers; /* of all pools */
    struct list holders;
    struct list lacking; /* struct budget_part.waiter: pools below the level, which come first */
    struct list users;   /* struct budget_user.link: those of the other waiters, in turn */
    struct budget_user common; /* of pools of no particular user */
    struct index by_id;        /* the others */
    struct list limited;       /* pools that want more than they may have */
};

/* Returns 0 or -ENOMEM. Until budget_set_total(), pools have no limit. */
int budget_init(struct budget *budget, void (*decide_again)(struct budget_part *part));
void budget_deinit(struct budget *budget);
void budget_set_total(struct budget *budget, size_t total);

void budget_part_init(struct budget_part *part);
/* Call it before the pool is freed. */
void budget_leave(struct budget *budget, struct budget_part *part);

/* The pool belongs to this user; 0 = to no particular one. Idempotent. */
void budget_set_user(struct budget *budget, struct budget_part *part, uint64_t id);
void budget_want(struct budget *budget, struct budget_part *part, size_t wanted);
/* Returns how many workers the pool may have now. `turn`: how long it may have one more than
 * others. */
size_t budget_limit(const struct budget *budget, struct budget_part *part, usec_t turn, usec_t now);
/* Notes how many workers the pool has. Returns when to decide again. */
usec_t budget_note(struct budget *budget, struct budget_part *part, size_t n_workers, usec_t turn,
                   usec_t now);

/* Returns how many pools want workers. */
size_t budget_n_pools(const struct budget *budget);
