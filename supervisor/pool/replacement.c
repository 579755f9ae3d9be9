/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/replacement.h"

#include "shared/base/log.h"
#include "supervisor/event/event-id.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/stand-in.h"
#include "supervisor/pool/slot-private.h"
#include "supervisor/pool/spare.h"
#include <stdio.h>

/* ---- what is said about it ---- */

static void tell_replaced(struct slot *old, const struct slot *successor)
{
    char text[160];

    (void)snprintf(text, sizeof(text), "is replaced by generation %llu: %s",
                   (unsigned long long)successor->generation, old->wish_reason);
    slot_tell(old, LOG_LEVEL_INFO, "worker.recycled", NULL, NULL, text);
}

/* ---- wishes ---- */

void replacement_wish(struct slot *slot, const char *reason)
{
    struct replacement *replacement = &slot->pool->replacement;

    if (slot->role != SLOT_MEMBER || slot->retired || list_linked(&slot->wish_link) ||
        replacement->old == slot)
        return;
    slot->wish_reason = reason;
    list_push_back(&replacement->wishes, &slot->wish_link);
    pool_wake(slot->pool);
}

/* The successor does not take the place: its generation is that of nobody else for all that. */
static void replacement_part(struct pool *pool)
{
    pool->replacement.old->tried = pool->aside->generation;
    pool->replacement.old = NULL;
    pool->aside->role = SLOT_PREDECESSOR;
    slot_count(pool->aside);
}

/* The successor is no longer waited for. */
static void replacement_abandon(struct pool *pool)
{
    if (!pool->replacement.old)
        return;
    replacement_part(pool);
    slot_stop(pool->aside, true);
    pool_wake(pool);
}

void replacement_forget(struct slot *slot)
{
    struct replacement *replacement = &slot->pool->replacement;

    list_unlink(&slot->wish_link);
    slot->rolls = false;
    if (replacement->old == slot)
        replacement_abandon(slot->pool);
    if (replacement->in_place == slot)
        replacement->in_place = NULL;
    if (replacement->rolling)
        pool_wake(slot->pool);
}

void replacement_set_stopped(struct pool *pool, bool stopped)
{
    pool->set->n_behind += stopped;
    pool->set->n_behind -= pool->replacement.stopped;
    pool->replacement.stopped = stopped;
}

void pool_roll(struct pool *pool)
{
    struct replacement *replacement = &pool->replacement;

    replacement->rolling = true;
    replacement_set_stopped(pool, false);
    replacement->n_failed = 0;
    timer_disarm(pool_timers(pool), &replacement->retry);
    replacement->in_place = NULL;
    replacement_abandon(pool); /* of the program before */
    for (size_t i = 0; i < pool->size; i++) {
        struct slot *slot = pool->slots[i];
        spare_dismiss(slot, false);
        if (slot_is_up(slot)) {
            slot->rolls = true;
            slot->wish_reason = "its program has changed";
            replacement_wish(slot, slot->wish_reason);
        } else if (slot->wanted) {
            slot_restart(slot);
        }
    }
    pool_wake(pool);
}

size_t pool_halt_roll(struct pool *pool)
{
    struct slot *old = pool->replacement.old;
    size_t n = 0;

    if (!pool->replacement.rolling)
        return 0;
    pool->replacement.rolling = false;
    replacement_set_stopped(pool, true);
    if (old && old->rolls)
        replacement_abandon(pool);
    for (size_t i = 0; i < pool->n_slots; i++) {
        struct slot *slot = pool->slots[i];
        n += slot->rolls;
        if (slot->rolls)
            list_unlink(&slot->wish_link);
        slot->rolls = false;
    }
    return n;
}

/* ---- successors ---- */

static void replacement_retry_later(struct pool *pool)
{
    struct replacement *replacement = &pool->replacement;
    const struct backoff_policy policy = {
        .min = pool->config->min, .max = pool->config->max, .random = pool->config->random};
    usec_t delay = backoff_delay(&policy, replacement->n_failed++, pool->context->random);

    (void)timer_arm(pool_timers(pool), &replacement->retry,
                    usec_add(loop_now(pool->context->loop), delay));
}

static void replacement_on_retry(struct timer *timer, usec_t now)
{
    (void)now;
    pool_wake(list_entry(timer, struct pool, replacement.retry));
}

/* The old one goes on working. */
static void replacement_failed(struct pool *pool, struct slot *old)
{
    slot_tell(old, LOG_LEVEL_WARNING, "worker.not-recycled", EVENT_ID_NOT_RECYCLED, NULL,
              "is not replaced: its successor did not come up; it goes on working");
    if (old->rolls) {
        pool->handler->roll_failed(pool);
        return;
    }
    list_push_front(&pool->replacement.wishes, &old->wish_link);
    replacement_retry_later(pool);
}

static void replacement_start_successor(struct pool *pool, struct slot *old)
{
    struct slot *successor;

    if (slot_new(&successor, pool, old->index) < 0) {
        replacement_failed(pool, old);
        return;
    }
    successor->role = SLOT_SUCCESSOR;
    successor->generation = old->generation;
    successor->tried = old->tried;
    successor->born = old->born;
    successor->twin = !old->twin;
    slot_count(successor);
    if (successor->actor)
        stand_in_set(successor->actor, old->actor);
    pool->aside = successor;
    pool->replacement.old = old;
    slot_start(successor);
}

/* Its spare is its successor, if it is one; who else is beside the place has to go first. Whether
 * there is something to wait for. */
static bool replacement_by_spare(struct pool *pool, struct slot *slot)
{
    if (!spare_is_ready(slot)) {
        spare_dismiss(slot, false);
        list_push_front(&pool->replacement.wishes, &slot->wish_link);
        return true;
    }
    tell_replaced(slot, slot->beside);
    slot->n_recycled++;
    spare_take_over(slot);
    slot_stop(slot, false);
    return false;
}

/* Whether there is something to wait for now. */
static bool replacement_begin(struct pool *pool, struct slot *slot)
{
    list_unlink(&slot->wish_link);
    if (!slot_is_up(slot)) {
        slot->rolls = false; /* it gets a new process anyhow */
        return false;
    }
    if (slot->beside)
        return replacement_by_spare(pool, slot);
    if (slot_is_actor(slot)) {
        replacement_start_successor(pool, slot);
    } else {
        slot_restart(slot);
        pool->replacement.in_place = slot;
    }
    return true;
}

static void replacement_review_roll(struct pool *pool)
{
    struct replacement *replacement = &pool->replacement;

    if (!replacement->rolling || !list_empty(&replacement->wishes))
        return;
    replacement->rolling = false;
    if (!pool->wanted)
        return;
    pool_tell(pool, LOG_LEVEL_NOTICE, "group.rolled", NULL, "runs its new program everywhere");
}

/* The chair beside the pool is free. Its place may be gone, too. */
static void replacement_clear(struct pool *pool)
{
    const unsigned index = pool->aside->index;

    pool->aside = slot_free(pool->aside);
    if (index < pool->n_slots)
        spare_review(pool->slots[index]);
}

void replacement_step(struct pool *pool)
{
    struct replacement *replacement = &pool->replacement;
    struct list *node;

    if (pool->aside && !replacement->old && slot_is_down(pool->aside))
        replacement_clear(pool);
    while (!pool->aside && !replacement->in_place && !timer_armed(&replacement->retry)) {
        node = list_first(&replacement->wishes);
        if (!node) {
            replacement_review_roll(pool);
            return;
        }
        if (replacement_begin(pool, list_entry(node, struct slot, wish_link)))
            return;
    }
}

void replacement_give_place(struct slot *old, struct slot *successor)
{
    old->pool->slots[old->index] = successor;
    successor->role = SLOT_MEMBER;
    successor->tried = old->tried < old->generation ? old->generation : old->tried;
    restart_move(&successor->tally, &old->tally);
    successor->n_restarts = old->n_restarts;
    successor->n_recycled = old->n_recycled;
    death_unref(successor->last_death);
    successor->last_death = old->last_death;
    old->last_death = NULL;
    old->role = SLOT_PREDECESSOR;
    old->retired = true;
    old->rolls = false;
    list_unlink(&old->wish_link);
    list_unlink(&old->review_link);
    slot_count(old);
    slot_count(successor);
    slot_swap_actors(old, successor);
    slot_health_inherit(successor, old);
}

static void replacement_swap(struct pool *pool)
{
    struct slot *old = pool->replacement.old, *successor = pool->aside;

    pool->aside = old;
    pool->replacement.old = NULL;
    pool->replacement.n_failed = 0;
    replacement_give_place(old, successor);
}

void replacement_on_ready(struct slot *slot)
{
    struct pool *pool = slot->pool;
    struct slot *old = pool->replacement.old;

    if (pool->replacement.in_place == slot) {
        pool->replacement.in_place = NULL;
        slot->rolls = false;
        pool_wake(pool);
    }
    if (slot->role != SLOT_SUCCESSOR)
        return;
    replacement_swap(pool);
    slot->n_recycled++;
    tell_replaced(old, slot);
    slot_stop(old, false);
}

void replacement_on_failure(struct slot *slot)
{
    struct pool *pool = slot->pool;
    struct slot *old = pool->replacement.old;

    if (pool->replacement.in_place == slot) {
        pool->replacement.in_place = NULL;
        pool->handler->roll_failed(pool);
    }
    if (slot->role != SLOT_SUCCESSOR)
        return;
    slot->wanted = false;
    replacement_part(pool);
    replacement_failed(pool, old);
}

bool replacement_take_over(struct slot *slot)
{
    struct pool *pool = slot->pool;

    if (pool->replacement.old != slot)
        return false;
    replacement_swap(pool);
    slot->wanted = false;
    return true;
}

void replacement_init(struct pool *pool)
{
    list_init(&pool->replacement.wishes);
    timer_init(&pool->replacement.retry, replacement_on_retry);
}

void replacement_deinit(struct pool *pool)
{
    replacement_set_stopped(pool, false);
    timer_disarm(pool_timers(pool), &pool->replacement.retry);
    pool->aside = slot_free(pool->aside);
}
