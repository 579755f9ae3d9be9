/* SPDX-License-Identifier: MIT */
#include "shared/base/log.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery.h"
#include "supervisor/message/monitor.h"
#include "supervisor/message/router.h"
#include "supervisor/message/stand-in.h"
#include "supervisor/pool/slot-private.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int slot_new_actor(struct slot *slot)
{
    int r;

    if (!slot_is_actor(slot))
        return 0;
    r = actor_new(&slot->actor, slot_context(slot)->context, ACTOR_SLOT, slot->name);
    if (r < 0)
        return r;
    slot->actor->slot = slot;
    slot->actor->log = slot->pool->actor->log;
    return 0;
}

void slot_free_actor(struct slot *slot)
{
    if (slot->actor)
        router_remove(slot->actor, "its place in the pool is gone");
    slot->actor = NULL;
}

static void slot_review_failure(struct slot *slot)
{
    const bool failed = slot->state == LIFECYCLE_FAILED;
    char cause[DEATH_DETAIL_MAX + 32];

    if (slot->actor->failed == failed)
        return;
    slot->actor->failed = failed;
    if (!failed)
        return;
    (void)snprintf(cause, sizeof(cause), "failed: %s",
                   slot->last_death ? slot->last_death->detail : "it cannot be started");
    monitor_notify(slot->actor, cause);
}

void slot_review_actor(struct slot *slot)
{
    if (!slot->actor)
        return;
    delivery_set_up(slot->actor, slot_is_up(slot) && slot->role != SLOT_SPARE);
    slot_review_clock(slot);
    slot_review_failure(slot);
}

void slot_report_messages(struct slot *slot, struct death *death)
{
    struct delivery_taken taken[DEATH_MESSAGES_MAX];
    const struct actor_table *actors = slot_context(slot)->actors;
    size_t n;

    if (!slot->actor || !slot->actor->endpoint)
        return;
    n = delivery_flight_recorder(slot->actor, taken, DEATH_MESSAGES_MAX);
    death->messages = n > 0 ? calloc(n, sizeof(*death->messages)) : NULL;
    death->n_messages = death->messages ? n : 0;
    for (size_t i = 0; i < death->n_messages; i++) {
        struct death_message *message = &death->messages[i];

        message->id = taken[i].id;
        message->sent_at = taken[i].sent_at;
        message->in_hand = taken[i].in_hand;
        (void)snprintf(message->sender, sizeof(message->sender), "%s",
                       actor_name_of(actors, taken[i].sender));
        (void)snprintf(message->type, sizeof(message->type), "%.*s", (int)taken[i].topic.type_size,
                       taken[i].topic.type);
    }
}

void slot_recover_messages(struct slot *slot, struct death *death)
{
    if (slot->actor && slot->actor->endpoint)
        delivery_recover(slot->actor, death);
}

void slot_swap_actors(struct slot *old, struct slot *successor)
{
    struct actor *place = old->actor, *stand_in = successor->actor;
    const bool dying = old->state == LIFECYCLE_KILLING || old->process.ended;

    if (!place)
        return;
    stand_in_swap(stand_in, dying);
    place->slot = successor;
    stand_in->slot = old;
    successor->actor = place;
    old->actor = stand_in;
    successor->messages_measured = place->counters.consumed;
    old->messages_measured = stand_in->counters.consumed;
    successor->health.consumed_before = place->counters.consumed;
    old->health.consumed_before = stand_in->counters.consumed;
    place->tells_clock = stand_in->tells_clock = false;
    successor->clocks_messages = old->clocks_messages = false;
    slot_review_actor(old);
    slot_review_actor(successor);
}
