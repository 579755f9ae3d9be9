/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who of a cell's slots gets the next message for the pool: the one with the fewest in hand, as
 * long as that is less than BatchMax=. Slots stand in buckets by that number, so that a pick costs
 * the same whatever the size of the pool.
 */

#include "shared/list.h"
#include <stdbool.h>

struct actor;

/* Those with more share the last one. */
#define POOL_BUCKETS 32u

struct pool {
    struct list buckets[POOL_BUCKETS]; /* actors by n_pooled, struct actor.pool_link */
    unsigned lowest;                   /* no bucket below it has anybody */
};

void pool_init(struct pool *pool);

/* A slot's place after a change: in its bucket if it can take a message, else nowhere. */
void pool_review(struct pool *pool, struct actor *slot);

/*
 * Whom to give the next message; NULL = all have their share: those are asked to tell when they
 * have consumed something (delivery_on_space() follows).
 */
struct actor *pool_pick(struct pool *pool, unsigned batch_max);
