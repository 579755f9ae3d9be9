/* SPDX-License-Identifier: MIT */
/*
 * Replaces workers while the pool keeps its size: a successor starts as the place's standby and
 * takes the place when it is ready; then the old worker finishes its work and stops. The next
 * replacement begins after that, so a pool of n without spares has at most n + 1 processes.
 *
 * A service restarts in its place, one after the other: two at once would fight for a port or lock.
 */

#include "supervisor/event/event-id.h"
#include "supervisor/pool/pool-private.h"
#include "supervisor/pool/slot/slot-template.h"
#include <inttypes.h>

/* Returns the member whose successor starts, or NULL. */
static struct slot *replacement_old(const struct pool *pool)
{
    const struct slot *standby = pool->replacement.standby;

    return standby && standby->role == SLOT_SUCCESSOR ? pool->slots[standby->index] : NULL;
}

static void tell_replaced(struct slot *old, const struct slot *successor)
{
    slot_tell(old, (struct event){.level = LOG_LEVEL_INFO, .type = "worker.recycled"},
              "is replaced by generation %" PRIu64 ": %s", successor->generation,
              old->replace_reason);
}

void pool_replacement_queue(struct slot *slot, const char *reason)
{
    if (slot->role != SLOT_MEMBER || slot->retired || list_linked(&slot->replace_link) ||
        slot_has_standby(slot, SLOT_SUCCESSOR))
        return;
    slot->replace_reason = reason;
    list_push_back(&slot->pool->replacement.queue, &slot->replace_link);
    pool_wake(slot->pool);
}

static void replacement_give_up(struct pool *pool)
{
    pool->replacement.standby->role = SLOT_PREDECESSOR;
    slot_count(pool->replacement.standby);
}

/* Stops the successor, if there is one. */
static void replacement_abandon(struct pool *pool)
{
    if (!replacement_old(pool))
        return;
    replacement_give_up(pool);
    slot_stop(pool->replacement.standby, true);
    pool_standby_review(pool->replacement.standby);
}

void pool_replacement_forget(struct slot *slot)
{
    struct replacement *replacement = &slot->pool->replacement;

    list_unlink(&slot->replace_link);
    slot->rolls = false;
    if (replacement_old(slot->pool) == slot)
        replacement_abandon(slot->pool);
    if (replacement->in_place == slot)
        replacement->in_place = NULL;
    if (replacement->rolling)
        pool_wake(slot->pool);
}

void pool_replacement_set_stopped(struct pool *pool, bool stopped)
{
    pool->set->n_behind += stopped;
    pool->set->n_behind -= pool->replacement.stopped;
    pool->replacement.stopped = stopped;
}

static void roll_slot(struct slot *slot)
{
    pool_standby_dismiss_spare(slot, false);
    if (slot_is_up(slot)) {
        slot->rolls = true;
        slot->replace_reason = "its program has changed";
        pool_replacement_queue(slot, slot->replace_reason);
    } else if (slot->plan == SLOT_ON) {
        slot_restart(slot);
    }
}

void pool_roll(struct pool *pool)
{
    struct replacement *replacement = &pool->replacement;

    replacement->rolling = true;
    pool_replacement_set_stopped(pool, false);
    replacement->n_failed = 0;
    timer_disarm(pool_timers(pool), &replacement->retry);
    replacement->in_place = NULL;
    replacement_abandon(pool); /* it has the old program */
    for (size_t i = 0; i < pool->size; i++)
        roll_slot(pool->slots[i]);
    pool_wake(pool);
}

void pool_roll_behind(struct pool *pool)
{
    for (size_t i = 0; i < pool->size; i++) {
        struct slot *slot = pool->slots[i];

        if (slot_has_standby(slot, SLOT_SPARE) && slot_is_behind(slot->standby))
            pool_standby_dismiss_spare(slot, false);
        if (slot->plan != SLOT_ON || !slot_is_behind(slot))
            continue;
        pool->replacement.rolling = true;
        roll_slot(slot);
    }
    pool_wake(pool);
}

size_t pool_halt_roll(struct pool *pool)
{
    const struct slot *old = replacement_old(pool);
    size_t n = 0;

    if (!pool->replacement.rolling)
        return 0;
    pool->replacement.rolling = false;
    pool_replacement_set_stopped(pool, true);
    if (old && old->rolls)
        replacement_abandon(pool);
    for (size_t i = 0; i < pool->n_slots; i++) {
        struct slot *slot = pool->slots[i];
        n += slot->rolls;
        if (slot->rolls)
            list_unlink(&slot->replace_link);
        slot->rolls = false;
    }
    return n;
}

static void replacement_review_roll(struct pool *pool)
{
    struct replacement *replacement = &pool->replacement;

    if (!replacement->rolling || !list_empty(&replacement->queue))
        return;
    replacement->rolling = false;
    if (!pool->wanted)
        return;
    pool_tell(pool, (struct event){.level = LOG_LEVEL_NOTICE, .type = "group.rolled"},
              "runs its new program everywhere");
}

static void replacement_retry_later(struct pool *pool)
{
    struct replacement *replacement = &pool->replacement;
    const struct backoff_policy policy = {
        .min = pool->config->min, .max = pool->config->max, .random = pool->config->random};
    usec_t delay = backoff_delay(&policy, replacement->n_failed++, pool->context->random);

    timer_arm(pool_timers(pool), &replacement->retry,
              usec_add(loop_now(pool->context->loop), delay));
}

static void replacement_on_retry(struct timer *timer, usec_t now)
{
    pool_wake(list_entry(timer, struct pool, replacement.retry));
}

static void replacement_failed(struct pool *pool, struct slot *old)
{
    slot_tell(old,
              (struct event){.level = LOG_LEVEL_WARNING,
                             .type = "worker.not-recycled",
                             .message_id = EVENT_ID_NOT_RECYCLED},
              "is not replaced: its successor did not come up; it continues");
    if (old->rolls) {
        pool->handler->roll_failed(pool);
        return;
    }
    list_push_front(&pool->replacement.queue, &old->replace_link);
    replacement_retry_later(pool);
}

static void replacement_start_successor(struct pool *pool, struct slot *old)
{
    struct slot *successor = pool_standby_new(old, SLOT_SUCCESSOR);

    if (!successor) {
        replacement_failed(pool, old);
        return;
    }
    pool->replacement.standby = successor;
    slot_start(successor);
}

/* A ready spare becomes the successor; any other standby must end first. Returns whether to wait
 * for that. */
static bool replacement_by_standby(struct pool *pool, struct slot *slot)
{
    if (!pool_standby_is_ready(slot)) {
        pool_standby_dismiss_spare(slot, false);
        list_push_front(&pool->replacement.queue, &slot->replace_link);
        return true;
    }
    tell_replaced(slot, slot->standby);
    slot->n_recycled++;
    pool_standby_take_over(slot);
    slot_stop(slot, false);
    return false;
}

/* A fork takes less time than a successor needs to come up. */
static void replacement_fork(struct slot *slot)
{
    slot_tell(slot, (struct event){.level = LOG_LEVEL_INFO, .type = "worker.recycled"},
              "is replaced by a fork of its template: %s", slot->replace_reason);
    slot->n_recycled++;
    slot_restart(slot);
}

static void replacement_in_place(struct slot *slot)
{
    if (!slot->rolls) {
        slot->n_recycled++;
        slot_tell(slot, (struct event){.level = LOG_LEVEL_INFO, .type = "worker.recycled"},
                  "restarts: %s", slot->replace_reason);
    }
    slot_restart(slot);
    slot->pool->replacement.in_place = slot;
}

/* Returns whether the next replacement has to wait. */
static bool replacement_begin(struct pool *pool, struct slot *slot)
{
    list_unlink(&slot->replace_link);
    if (!slot_is_up(slot)) {
        slot->rolls = false; /* it gets a new process anyway */
        return false;
    }
    if (slot->standby)
        return replacement_by_standby(pool, slot);
    if (slot_template_socket(slot) > 0 && !slot->rolls) {
        replacement_fork(slot);
        return false;
    }
    if (slot_is_actor(slot)) {
        replacement_start_successor(pool, slot);
    } else {
        replacement_in_place(slot);
    }
    return true;
}

void pool_replacement_step(struct pool *pool)
{
    struct replacement *replacement = &pool->replacement;
    struct list *node;

    while (!replacement->standby && !replacement->in_place && !timer_armed(&replacement->retry)) {
        node = list_first(&replacement->queue);
        if (!node) {
            replacement_review_roll(pool);
            return;
        }
        if (replacement_begin(pool, list_entry(node, struct slot, replace_link)))
            return;
    }
}

/* The next replacement waits for the predecessor's end. */
static void replacement_swap(struct slot *old)
{
    struct replacement *replacement = &old->pool->replacement;

    replacement->standby = old;
    replacement->n_failed = 0;
    pool_standby_swap(old);
}

void pool_replacement_on_ready(struct slot *slot)
{
    struct pool *pool = slot->pool;
    struct slot *old = replacement_old(pool);

    if (pool->replacement.in_place == slot) {
        pool->replacement.in_place = NULL;
        slot->rolls = false;
        pool_wake(pool);
    }
    if (slot->role != SLOT_SUCCESSOR)
        return;
    replacement_swap(old);
    slot->n_recycled++;
    tell_replaced(old, slot);
    slot_stop(old, false);
}

void pool_replacement_on_failure(struct slot *slot)
{
    struct pool *pool = slot->pool;
    struct slot *old = replacement_old(pool);

    if (pool->replacement.in_place == slot) {
        pool->replacement.in_place = NULL;
        if (pool->replacement.rolling)
            pool->handler->roll_failed(pool);
    }
    if (slot->role != SLOT_SUCCESSOR)
        return;
    slot->plan = SLOT_OFF;
    replacement_give_up(pool);
    replacement_failed(pool, old);
}

bool pool_replacement_take_over(struct slot *slot)
{
    if (replacement_old(slot->pool) != slot)
        return false;
    replacement_swap(slot);
    slot->plan = SLOT_OFF;
    return true;
}

void pool_replacement_init(struct pool *pool)
{
    list_init(&pool->replacement.queue);
    timer_init(&pool->replacement.retry, replacement_on_retry);
}

void pool_replacement_deinit(struct pool *pool)
{
    pool_replacement_set_stopped(pool, false);
    timer_disarm(pool_timers(pool), &pool->replacement.retry);
}
