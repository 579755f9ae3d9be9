/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/spare.h"

#include "shared/base/log.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/stand-in.h"
#include "supervisor/pool/replacement.h"
#include "supervisor/pool/slot-private.h"
#include <stdio.h>

/*
 * Starting a process holds the loop up for half a millisecond. After a death there is other work,
 * not least for the spare that has just taken over: the next one comes a little later.
 */
#define SPARE_PAUSE (10 * USEC_PER_MSEC)

static bool has_spare(const struct slot *place)
{
    return place->beside && place->beside->role == SLOT_SPARE;
}

/* ---- whether there is to be one ---- */

static bool spare_is_wanted(const struct slot *place)
{
    const struct config_group *config = place->pool->config;

    return place->index < config->spare && config->type == CONFIG_ACTOR &&
           config->strategy == CONFIG_ONE_FOR_ONE && place->wanted && !place->retired &&
           place->state != LIFECYCLE_FAILED;
}

/* Only beside a worker that has come up: what does not is not tried twice at a time. While the
 * place is being recycled, or is about to be, the other cgroup is its successor's. */
static bool spare_is_due(const struct slot *place)
{
    const struct pool *pool = place->pool;

    return spare_is_wanted(place) && slot_is_up(place) && !place->process.ended && !place->rolls &&
           !list_linked(&place->wish_link) && pool->replacement.old != place &&
           !(pool->aside && pool->aside->index == place->index);
}

void spare_review(struct slot *slot)
{
    struct pool *pool = slot->pool;
    struct slot *place = pool->slots[slot->index];

    if (list_linked(&place->review_link))
        return;
    list_push_back(&pool->reviews, &place->review_link);
    pool_wake(pool);
}

void spare_review_all(struct pool *pool)
{
    for (size_t i = 0; i < pool->size; i++)
        if (pool->slots[i]->beside || i < pool->config->spare)
            spare_review(pool->slots[i]);
}

/* ---- it comes and goes ---- */

static void spare_start_later(struct slot *place)
{
    struct pool *pool = place->pool;

    list_push_back(&pool->spares_due, &place->review_link);
    if (timer_armed(&pool->spare_timer))
        return;
    if (timer_arm(pool_timers(pool), &pool->spare_timer,
                  usec_add(loop_now(pool->context->loop), SPARE_PAUSE)) < 0)
        limited_log_write(pool->context->log, pool->config->name, LOG_LEVEL_ERROR,
                          "%s: out of memory arming a timer", pool->name);
}

/* Best effort: without memory the place is as without Spare= until the next review. */
static void spare_start(struct slot *place)
{
    struct slot *spare;

    if (slot_new(&spare, place->pool, place->index) < 0)
        return;
    spare->role = SLOT_SPARE;
    spare->born = place->born;
    spare->twin = !place->twin;
    if (spare->actor)
        stand_in_set(spare->actor, place->actor);
    place->beside = spare;
    slot_start(spare);
}

void spare_dismiss(struct slot *slot, bool hurry)
{
    if (!has_spare(slot))
        return;
    slot_stop(slot->beside, hurry);
    spare_review(slot);
}

/* Its generation is that of nobody else. */
static void spare_forget(struct slot *place)
{
    const struct slot *gone = place->beside;

    if (place->tried < gone->generation)
        place->tried = gone->generation;
    place->beside = slot_free(place->beside);
    pool_wake(place->pool);
}

static void spare_look_at(struct slot *place)
{
    const struct slot *beside = place->beside;

    if (has_spare(place) && beside->wanted && !spare_is_wanted(place))
        spare_dismiss(place, false);
    if (beside && !beside->wanted && slot_is_down(beside))
        spare_forget(place);
    if (!place->beside && spare_is_due(place))
        spare_start_later(place);
}

void spare_step(struct pool *pool)
{
    struct list *node;

    while ((node = list_first(&pool->reviews))) {
        list_unlink(node);
        spare_look_at(list_entry(node, struct slot, review_link));
    }
}

static void spare_on_timer(struct timer *timer, usec_t now)
{
    struct pool *pool = list_entry(timer, struct pool, spare_timer);
    struct list *node;

    (void)now;
    while ((node = list_first(&pool->spares_due))) {
        struct slot *place = list_entry(node, struct slot, review_link);

        list_unlink(node);
        if (!place->beside && spare_is_due(place))
            spare_start(place);
    }
}

void spare_init(struct pool *pool)
{
    list_init(&pool->reviews);
    list_init(&pool->spares_due);
    timer_init(&pool->spare_timer, spare_on_timer);
}

void spare_deinit(struct pool *pool)
{
    timer_disarm(pool_timers(pool), &pool->spare_timer);
}

/* ---- it takes over ---- */

bool spare_is_ready(const struct slot *slot)
{
    return slot->role == SLOT_MEMBER && has_spare(slot) && spare_is_wanted(slot) &&
           slot->beside->wanted && slot_is_up(slot->beside) && !slot->beside->process.ended;
}

static void spare_tell(struct slot *slot, const struct slot *spare)
{
    char text[96];

    (void)snprintf(text, sizeof(text), "has its spare in its place, generation %llu",
                   (unsigned long long)spare->generation);
    slot_tell(slot, LOG_LEVEL_INFO, "worker.spare-used", NULL, NULL, text);
}

void spare_take_over(struct slot *slot)
{
    struct slot *spare = slot->beside;

    slot->beside = NULL;
    spare->beside = slot;
    slot->wanted = false;
    replacement_give_place(slot, spare);
    spare_tell(slot, spare);
    slot_join_pool(spare);
    spare_review(spare);
}
