/* SPDX-License-Identifier: MIT */
#include "supervisor/message/delivery/least-loaded.h"

#include "supervisor/channel/endpoint.h"
#include "supervisor/message/actor.h"

void least_loaded_init(struct least_loaded *pool, unsigned batch_max)
{
    for (unsigned i = 0; i < LEAST_LOADED_BUCKETS; i++)
        list_init(&pool->buckets[i]);
    pool->lowest = LEAST_LOADED_BUCKETS;
    pool->batch_max = batch_max;
}

void least_loaded_review(struct least_loaded *pool, struct actor *slot)
{
    const unsigned bucket = slot->inbox.n_pooled < LEAST_LOADED_BUCKETS ? slot->inbox.n_pooled
                                                                        : LEAST_LOADED_BUCKETS - 1;

    list_unlink(&slot->pool_link);
    if (slot->inbox.full || slot->place || !actor_is_direct(slot))
        return;
    /* At the back, so that slots with equal load take turns. */
    list_push_back(&pool->buckets[bucket], &slot->pool_link);
    if (bucket < pool->lowest)
        pool->lowest = bucket;
}

static struct actor *pool_first(struct least_loaded *pool)
{
    while (pool->lowest < LEAST_LOADED_BUCKETS && list_empty(&pool->buckets[pool->lowest]))
        pool->lowest++;
    if (pool->lowest == LEAST_LOADED_BUCKETS)
        return NULL;
    return list_first_entry(&pool->buckets[pool->lowest], struct actor, pool_link);
}

struct actor *least_loaded_pick(struct least_loaded *pool)
{
    struct actor *slot;

    while ((slot = pool_first(pool)) && slot->inbox.n_pooled >= pool->batch_max) {
        if (endpoint_await(slot->inbox.endpoint))
            list_unlink(&slot->pool_link);
        else
            least_loaded_review(pool, slot); /* it has consumed some, or is dead */
    }
    return slot;
}
