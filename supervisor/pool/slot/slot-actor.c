/* SPDX-License-Identifier: MIT */
/* A slot as an actor. */

#include "supervisor/message/actor.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/monitor.h"
#include "supervisor/pool/slot/slot-private.h"
#include <stdio.h>
#include <stdlib.h>

static bool is_stopped(const struct actor *actor)
{
    return slot_is_down(actor->owner);
}

static void on_inbox_used(struct actor *actor)
{
    slot_clock_messages(actor->owner);
}

static bool is_reserved(const struct actor *actor)
{
    return slot_job_waits(actor->owner);
}

/* The place of an elastic pool without workers stays as long as its template. */
static int deliver(struct actor *actor, struct envelope *envelope)
{
    const struct slot *slot = actor->owner;
    int r = delivery_to_inbox(actor, envelope);

    if (slot->retired && !mailbox_idle(&actor->mailbox))
        pool_wake(slot->pool);
    return r;
}

static const struct actor_class SLOT_ACTOR = {
    .kind = ACTOR_SLOT,
    .deliver = deliver,
    .feed = delivery_feed_inbox,
    .is_stopped = is_stopped,
    .inbox_used = on_inbox_used,
    .inbox_reserved = is_reserved,
};

int slot_new_actor(struct slot *slot)
{
    struct actor *pool = slot->pool->actor;

    if (!slot_is_actor(slot))
        return 0;
    return actor_new(&slot->actor, slot_context(slot)->messages,
                     &(struct actor_options){.class = &SLOT_ACTOR,
                                             .owner = slot,
                                             .name = slot->name,
                                             .pool = pool,
                                             .log = pool->log,
                                             .config = slot->pool->config});
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
    struct message_context *messages = slot_context(slot)->messages;
    size_t n;

    if (!slot->actor || !slot->actor->inbox.endpoint)
        return;
    n = delivery_list_in_hand(slot->actor, taken, DEATH_MESSAGES_MAX);
    death->messages = n > 0 ? calloc(n, sizeof(*death->messages)) : NULL;
    death->n_messages = death->messages ? n : 0;
    for (size_t i = 0; i < death->n_messages; i++) {
        struct death_message *message = &death->messages[i];

        message->id = taken[i].id;
        message->sent_at = taken[i].sent_at;
        (void)snprintf(message->sender, sizeof(message->sender), "%s",
                       actor_name_of(messages, taken[i].sender));
        (void)snprintf(message->type, sizeof(message->type), "%.*s", (int)taken[i].topic.type_size,
                       taken[i].topic.type);
    }
}

void slot_recover_messages(struct slot *slot, struct death *death)
{
    if (slot->actor && slot->actor->inbox.endpoint)
        delivery_recover(slot->actor, death);
}

void slot_swap_actors(struct slot *old, struct slot *successor)
{
    struct actor *place = old->actor, *standby = successor->actor;
    const bool dying = old->state == LIFECYCLE_KILLING || old->worker.process.ended;

    if (!place)
        return;
    delivery_swap(standby, dying);
    place->owner = successor;
    standby->owner = old;
    successor->actor = place;
    old->actor = standby;
    successor->messages_measured = place->counters.consumed;
    old->messages_measured = standby->counters.consumed;
    successor->health.consumed_before = place->counters.consumed;
    old->health.consumed_before = standby->counters.consumed;
    place->inbox_watched = standby->inbox_watched = false;
    successor->clocks_messages = old->clocks_messages = false;
    slot_review_actor(old);
    slot_review_actor(successor);
}
