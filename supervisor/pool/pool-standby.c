/* SPDX-License-Identifier: MIT */
/* The standby of a place: a spare, a successor, or a predecessor until it has ended. */

#include "supervisor/event/limited-log.h"
#include "supervisor/message/actor.h"
#include "supervisor/pool/pool-private.h"
#include <inttypes.h>

/* The next spare starts a little after a death: a start blocks the loop for half a millisecond, and
 * the spare that has just taken over has work. */
#define SPARE_PAUSE (10 * USEC_PER_MSEC)

static bool spare_is_wanted(const struct slot *place)
{
    const struct config_group *config = place->pool->config;

    return place->index < config->spare && config->type == CONFIG_ACTOR && place->plan == SLOT_ON &&
           !place->retired && place->state != LIFECYCLE_FAILED;
}

/* Whether to start a spare now. A worker that has not come up gets none, since the spare would
 * also fail; a worker to be replaced gets none, since its successor needs the second cgroup. */
static bool spare_is_due(const struct slot *place)
{
    return !place->standby && spare_is_wanted(place) && slot_is_up(place) &&
           !place->worker.process.ended && !place->rolls && !list_linked(&place->replace_link);
}

void pool_standby_review(struct slot *slot)
{
    struct pool *pool = slot->pool;
    struct slot *place = pool->slots[slot->index];

    list_unlink(&place->review_link); /* it may wait for a spare */
    list_push_back(&pool->reviews, &place->review_link);
    pool_wake(pool);
}

void pool_standby_review_all(struct pool *pool)
{
    for (size_t i = 0; i < pool->size; i++)
        if (pool->slots[i]->standby || i < pool->config->spare)
            pool_standby_review(pool->slots[i]);
}

struct slot *pool_standby_new(struct slot *place, enum slot_role role)
{
    struct slot *standby;

    if (slot_new(&standby, place->pool, place->index, !place->twin) < 0)
        return NULL;
    standby->role = role;
    standby->born = place->born;
    standby->generation = place->generation;
    slot_count(standby);
    if (standby->actor)
        actor_set_place(standby->actor, place->actor);
    place->standby = standby;
    return standby;
}

void pool_standby_restore(struct slot *place)
{
    struct slot *standby = pool_standby_new(place, SLOT_SPARE);

    if (!standby)
        return;
    if (slot_kept_role(standby) != SLOT_MEMBER) {
        standby->role = slot_kept_role(standby);
        return;
    }
    pool_standby_swap(place);
    place->role = slot_kept_role(place);
}

/* Drops a pending successor; whether the place still needs one is decided again. */
void pool_standby_resume(struct slot *place)
{
    struct slot *standby = place->standby;
    const bool spare = standby->role == SLOT_SPARE;

    standby->role = spare ? SLOT_SPARE : SLOT_PREDECESSOR;
    standby->retired = !spare;
    if (slot_has_held(standby))
        slot_resume(standby);
    slot_count(standby);
    pool_standby_review(place);
}

static void spare_start_later(struct slot *place)
{
    struct pool *pool = place->pool;

    list_push_back(&pool->spares_due, &place->review_link);
    if (!timer_armed(&pool->spare_timer))
        timer_arm(pool_timers(pool), &pool->spare_timer,
                  usec_add(loop_now(pool->context->loop), SPARE_PAUSE));
}

void pool_standby_dismiss_spare(struct slot *place, bool hurry)
{
    if (!slot_has_standby(place, SLOT_SPARE))
        return;
    slot_stop(place->standby, hurry);
    pool_standby_review(place);
}

static void standby_free(struct slot *place)
{
    struct slot *gone = place->standby;

    if (place->tried < gone->generation)
        place->tried = gone->generation;
    if (place->pool->replacement.standby == gone)
        place->pool->replacement.standby = NULL;
    place->standby = slot_free(gone);
    pool_wake(place->pool);
}

static void standby_look_at(struct slot *place)
{
    const struct slot *standby = place->standby;

    if (slot_has_standby(place, SLOT_SPARE) && standby->plan != SLOT_OFF && !spare_is_wanted(place))
        pool_standby_dismiss_spare(place, false);
    if (standby && standby->plan == SLOT_OFF && slot_is_down(standby))
        standby_free(place);
    if (spare_is_due(place))
        spare_start_later(place);
}

void pool_standby_step(struct pool *pool)
{
    list_until_empty (slot, &pool->reviews, struct slot, review_link) {
        list_unlink(&slot->review_link);
        standby_look_at(slot);
    }
}

static void standby_on_timer(struct timer *timer, usec_t now)
{
    struct pool *pool = list_entry(timer, struct pool, spare_timer);

    list_until_empty (place, &pool->spares_due, struct slot, review_link) {
        struct slot *spare;

        list_unlink(&place->review_link);
        /* Best effort: without memory there is no spare until the next review. */
        if (spare_is_due(place) && (spare = pool_standby_new(place, SLOT_SPARE)))
            slot_start(spare);
    }
}

void pool_standby_init(struct pool *pool)
{
    list_init(&pool->reviews);
    list_init(&pool->spares_due);
    timer_init(&pool->spare_timer, standby_on_timer);
}

bool pool_standby_is_ready(const struct slot *slot)
{
    return slot->role == SLOT_MEMBER && slot_has_standby(slot, SLOT_SPARE) &&
           spare_is_wanted(slot) && slot->standby->plan == SLOT_ON && slot_is_up(slot->standby) &&
           !slot->standby->worker.process.ended;
}

void pool_standby_swap(struct slot *old)
{
    struct slot *successor = old->standby;

    old->pool->slots[old->index] = successor;
    old->standby = NULL;
    successor->standby = old;
    successor->role = SLOT_MEMBER;
    successor->retired = old->retired;
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
    list_unlink(&old->replace_link);
    list_unlink(&old->review_link);
    slot_count(old);
    slot_count(successor);
    slot_swap_actors(old, successor);
    slot_health_inherit(successor, old);
    slot_keep(old);
    slot_keep(successor);
}

void pool_standby_take_over(struct slot *slot)
{
    struct slot *spare = slot->standby;

    slot->plan = SLOT_OFF;
    pool_standby_swap(slot);
    slot_tell(slot, (struct event){.level = LOG_LEVEL_INFO, .type = "worker.spare-used"},
              "has its spare in its place, generation %" PRIu64, spare->generation);
    slot_join_pool(spare);
    pool_standby_review(spare);
}
