/* SPDX-License-Identifier: MIT */
/*
 * Strategy=: which other workers restart when one dies. They are ended at once, and their jobs are
 * queued again without having used up an attempt. All start again, in the order of their slots,
 * when the last one is down and the backoff of the dead one is over. A worker that dies meanwhile
 * is also held, and ends no others.
 */

#include "supervisor/event/event-id.h"
#include "supervisor/pool/pool-private.h"

bool pool_strategy_takes(enum config_strategy strategy, unsigned dead, unsigned index)
{
    return (strategy == CONFIG_ONE_FOR_ALL && index != dead) ||
           (strategy == CONFIG_REST_FOR_ONE && index > dead);
}

static bool strategy_hold(struct slot *slot)
{
    /* A worker that is already dying also restarts with the others. */
    bool dying = slot->wanted && slot->state == LIFECYCLE_KILLING;

    slot->held = slot->held || dying || slot_kill(slot, DEATH_STOP);
    slot_count(slot);
    return slot->held;
}

/* `dead` NULL = holds all. */
static unsigned strategy_hold_all(struct pool *pool, const struct slot *dead)
{
    unsigned n = 0;

    pool->release_due = false;
    for (size_t i = 0; i < pool->size; i++) {
        struct slot *slot = pool->slots[i];
        if (slot != dead &&
            (!dead || pool_strategy_takes(pool->config->strategy, dead->index, slot->index)))
            n += strategy_hold(slot);
    }
    return n;
}

unsigned pool_hold(struct pool *pool)
{
    return strategy_hold_all(pool, NULL);
}

void pool_strategy_on_death(struct slot *slot)
{
    struct pool *pool = slot->pool;
    const enum config_strategy strategy = pool->config->strategy;
    unsigned n;

    if (strategy == CONFIG_ONE_FOR_ONE || !slot->worker.came_up || slot->held)
        return;
    slot->held = true;
    slot_count(slot);
    n = strategy_hold_all(pool, slot);
    if (strategy == CONFIG_REST_FOR_ONE)
        n += pool->handler->take_along(pool);
    if (n == 0)
        return;
    slot_tell(slot,
              (struct event){.level = LOG_LEVEL_NOTICE,
                             .type = "worker.takes-along",
                             .message_id = EVENT_ID_TAKES_ALONG},
              "takes %u other worker%s along (Strategy=%s)", n, n == 1 ? "" : "s",
              strategy == CONFIG_ONE_FOR_ALL ? "one-for-all" : "rest-for-one");
}

static void strategy_try(struct pool *pool)
{
    if (!pool->release_due)
        return;
    for (size_t i = 0; i < pool->size; i++)
        if (pool->slots[i]->held && pool->slots[i]->state != LIFECYCLE_BACKOFF)
            return;
    pool->release_due = false;
    for (size_t i = 0; i < pool->size; i++) {
        struct slot *slot = pool->slots[i];
        if (!slot->held)
            continue;
        slot->held = false;
        slot->undecided = true;
        slot_count(slot);
        slot_start_in_turn(slot);
    }
}

void pool_release(struct pool *pool)
{
    pool->release_due = true;
    strategy_try(pool);
}

void pool_strategy_on_down(struct slot *slot)
{
    slot_count_restart(slot);
    strategy_try(slot->pool);
}

void pool_strategy_forget(struct slot *slot)
{
    if (!slot->held)
        return;
    slot->held = false;
    slot_count(slot);
    slot->pool->handler->restart_due(slot->pool);
}
