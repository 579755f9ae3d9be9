/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Picks the slot of a pool for the next message: one with the fewest messages in its inbox, if that
 * is less than BatchMax=. Slots are in buckets by that number: the cost does not depend on the size
 * of the pool.
 */

#include "shared/base/list.h"

struct actor;

/* The last bucket also has the slots with more messages. */
#define LEAST_LOADED_BUCKETS 32u

struct least_loaded {
    struct list buckets[LEAST_LOADED_BUCKETS]; /* by inbox.n_pooled; struct actor.pool_link */
    unsigned lowest;                           /* buckets below it are empty */
    unsigned batch_max;                        /* set by the owner */
};

void least_loaded_init(struct least_loaded *pool, unsigned batch_max);

/* Moves a slot to its bucket after a change, or out of all if it takes no messages. */
void least_loaded_review(struct least_loaded *pool, struct actor *slot);

/* NULL = no slot takes one now; delivery_on_space() is called when a slot has consumed a message.
 */
struct actor *least_loaded_pick(struct least_loaded *pool);
