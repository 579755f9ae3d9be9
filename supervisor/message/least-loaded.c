/* SPDX-License-Identifier: MIT */
#include "supervisor/message/least-loaded.h"

#include "supervisor/channel/endpoint.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery.h"

void least_loaded_init(struct least_loaded *pool)
{
    for (unsigned i = 0; i < LEAST_LOADED_BUCKETS; i++)
        list_init(&pool->buckets[i]);
    pool->lowest = LEAST_LOADED_BUCKETS;
}

void least_loaded_review(struct least_loaded *pool, struct actor *slot)
{
    const unsigned bucket =
        slot->n_pooled < LEAST_LOADED_BUCKETS ? slot->n_pooled : LEAST_LOADED_BUCKETS - 1;

    list_unlink(&slot->pool_link);
    if (slot->full || slot->identity || !delivery_is_direct(slot))
        return;
    /* At the back: among equals each gets its turn. */
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
    return list_entry(list_first(&pool->buckets[pool->lowest]), struct actor, pool_link);
}

struct actor *least_loaded_pick(struct least_loaded *pool, unsigned batch_max)
{
    struct actor *slot;

    while ((slot = pool_first(pool)) && slot->n_pooled >= batch_max) {
        if (endpoint_await(slot->endpoint))
            list_unlink(&slot->pool_link);
        else
            least_loaded_review(pool, slot); /* it has consumed some, or it is gone */
    }
    return slot;
}
