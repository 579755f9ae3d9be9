/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who of a cell's slots gets the next message for the pool: the one with the fewest in hand, as
 * long as that is less than BatchMax=. Slots stand in buckets by that number, so that a pick costs
 * the same whatever the size of the pool.
 */

#include "shared/base/list.h"
#include <stdbool.h>

struct actor;

/* Those with more share the last one. */
#define LEAST_LOADED_BUCKETS 32u

struct least_loaded {
    struct list buckets[LEAST_LOADED_BUCKETS]; /* actors by n_pooled, struct actor.pool_link */
    unsigned lowest;                           /* no bucket below it has anybody */
};

void least_loaded_init(struct least_loaded *pool);

/* A slot's place after a change: in its bucket if it can take a message, else nowhere. */
void least_loaded_review(struct least_loaded *pool, struct actor *slot);

/*
 * Whom to give the next message; NULL = all have their share: those are asked to tell when they
 * have consumed something (delivery_on_space() follows).
 */
struct actor *least_loaded_pick(struct least_loaded *pool, unsigned batch_max);
