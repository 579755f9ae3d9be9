/* SPDX-License-Identifier: MIT */
#include "supervisor/message/pool.h"

#include "supervisor/channel/mailbox.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery.h"

void pool_init(struct pool *pool)
{
    for (unsigned i = 0; i < POOL_BUCKETS; i++)
        list_init(&pool->buckets[i]);
    pool->lowest = POOL_BUCKETS;
}

void pool_review(struct pool *pool, struct actor *slot)
{
    const unsigned bucket = slot->n_pooled < POOL_BUCKETS ? slot->n_pooled : POOL_BUCKETS - 1;

    list_unlink(&slot->pool_link);
    if (slot->full || slot->identity || !delivery_is_direct(slot))
        return;
    /* At the back: among equals each gets its turn. */
    list_push_back(&pool->buckets[bucket], &slot->pool_link);
    if (bucket < pool->lowest)
        pool->lowest = bucket;
}

static struct actor *pool_first(struct pool *pool)
{
    while (pool->lowest < POOL_BUCKETS && list_empty(&pool->buckets[pool->lowest]))
        pool->lowest++;
    if (pool->lowest == POOL_BUCKETS)
        return NULL;
    return list_entry(list_first(&pool->buckets[pool->lowest]), struct actor, pool_link);
}

struct actor *pool_pick(struct pool *pool, unsigned batch_max)
{
    struct actor *slot;

    while ((slot = pool_first(pool)) && slot->n_pooled >= batch_max) {
        if (mailbox_await(slot->mailbox))
            list_unlink(&slot->pool_link);
        else
            pool_review(pool, slot); /* it has consumed some, or it is gone */
    }
    return slot;
}
