/* SPDX-License-Identifier: MIT */
#include "supervisor/message/delivery.h"

#include "supervisor/channel/endpoint.h"
#include "supervisor/context.h"
#include "supervisor/group/cell.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/delivery-private.h"
#include "supervisor/message/message-log.h"
#include "supervisor/message/router.h"
#include "supervisor/pool/slot.h"
#include <errno.h>
#include <string.h>

/* Of what waited while a group or an exchange was paused: a fraction of a millisecond of work. */
#define COPIES_PER_TURN 250

struct actor *delivery_pool_of(const struct actor *actor)
{
    return actor->kind == ACTOR_SLOT ? actor->slot->pool->actor : NULL;
}

static void review_in_pool(struct actor *actor)
{
    struct actor *pool = delivery_pool_of(actor);

    if (pool)
        least_loaded_review(&pool->pool, actor);
}

bool delivery_takes_messages(const struct actor *actor)
{
    return actor->up && !actor->paused && !actor->waits_for;
}

bool delivery_is_direct(const struct actor *actor)
{
    const struct mailbox *mailbox = &actor->mailbox;

    if (!delivery_takes_messages(actor) || !mailbox_idle(mailbox))
        return false;
    if (mailbox->n_stashed == 0)
        return true;
    /* What it stashes of what it gets counts, too. */
    const struct actor_policy policy = actor_policy(actor);
    return mailbox_has_room(mailbox, 0, policy.mailbox_max, policy.mailbox_memory_max);
}

/* ---- writing records ---- */

int delivery_send(struct actor *actor, struct envelope *envelope)
{
    struct payload_wire wire = {.form = PAYLOAD_INLINE};
    int r;

    r = delivery_write(actor, envelope, &wire);
    if (r == ENDPOINT_E_FULL)
        actor->full = true;
    if (r != 0)
        return r;
    if (envelope->kind == PROTOCOL_MESSAGE)
        delivery_note_sent(actor, &(struct protocol_message){.id = envelope->id,
                                                             .sender = envelope->sender,
                                                             .ask = envelope->ask,
                                                             .flags = envelope->flags,
                                                             .content.topic = envelope->topic});
    if (wire.form == PAYLOAD_INLINE || envelope->kind != PROTOCOL_MESSAGE) {
        envelope_free(envelope);
        return 0;
    }
    /* The descriptor is needed again should the worker die before it has read the message. */
    envelope->cursor = actor->endpoint->channel.out.tail;
    list_push_back(&actor->blobs, &envelope->link);
    return 0;
}

void delivery_note_sent(struct actor *actor, const struct protocol_message *message)
{
    actor->counters.delivered++;
    actor->n_inbox++;
    if (actor->tells_clock)
        slot_clock_messages(actor->slot);
    if (message->ask != 0) {
        struct ask *ask = ask_get(&actor->context->asks, message->ask);
        if (ask)
            ask_handed(ask, actor_self(actor)->reference);
    }
    if (message->flags & PROTOCOL_MESSAGE_POOL) {
        actor->n_pooled++;
        review_in_pool(actor);
    }
    if (actor->log != 0)
        message_log(actor, ACTOR_LOG_DISPATCHED,
                    &(struct message_log_entry){.id = message->id,
                                                .sender = message->sender,
                                                .topic = &message->content.topic});
}

/* ---- feeding ---- */

bool delivery_must_read_first(struct actor *actor)
{
    actor->held_up = !router_answer_fits(actor, 0);
    return actor->held_up;
}

static void let_go_on(struct actor *actor)
{
    if (!actor->held_up || !actor->endpoint || !router_answer_fits(actor, 0))
        return;
    actor->held_up = false;
    endpoint_resume(actor->endpoint);
}

/* Ours is the fault (memory, descriptors): it cannot be handed over, and says so. */
static void give_up(struct actor *actor, struct envelope *envelope, int error)
{
    const struct router_verdict verdict = {
        .reason = DEAD_NO_MEMORY, .error = -error, .text = strerror(-error)};

    actor_log(actor, LOG_LEVEL_WARNING, "a message cannot be handed over: %s", strerror(-error));
    router_undeliverable(actor->context, envelope, actor, &verdict);
}

/* Whether it went, one way or another. */
static bool feed_one(struct actor *from, struct actor *to, struct envelope *envelope)
{
    const bool answer = envelope->place == ENVELOPE_ANSWERS;
    int r;

    mailbox_take(&from->mailbox, envelope);
    r = delivery_send(to, envelope);
    if (r == 0)
        return true;
    if (r < 0 && !to->endpoint->dead) {
        give_up(from, envelope, r);
        return true;
    }
    if (answer)
        mailbox_add_answer_front(&from->mailbox, envelope);
    else
        mailbox_add_front(&from->mailbox, envelope);
    return false;
}

/* What needs more room than a message would never find any if each took what there is. */
static bool others_first(const struct actor *actor)
{
    return actor->owes || (actor->kind == ACTOR_SLOT && slot_job_waits(actor->slot));
}

static void feed_inbox(struct actor *actor)
{
    struct envelope *envelope;

    if (actor->full && others_first(actor))
        return;
    if (actor->endpoint && !actor->endpoint->wants_space)
        actor->full = false;
    while (actor->endpoint && !actor->full &&
           (envelope = mailbox_next(&actor->mailbox, !delivery_takes_messages(actor))))
        if (!feed_one(actor, actor, envelope))
            break;
    let_go_on(actor);
    review_in_pool(actor);
}

static void feed_pool(struct actor *actor)
{
    const unsigned batch_max = actor->cell->config->batch_max;
    struct envelope *envelope;
    struct actor *slot;

    while (!actor->paused && (envelope = mailbox_oldest(&actor->mailbox)) &&
           (slot = least_loaded_pick(&actor->pool, batch_max))) {
        envelope->flags |= PROTOCOL_MESSAGE_POOL;
        if (!feed_one(actor, slot, envelope))
            review_in_pool(slot);
    }
}

/* Groups and exchanges keep nothing but what comes while they are paused. */
static void feed_others(struct actor *actor)
{
    const size_t copies =
        1 + (actor->kind == ACTOR_EXCHANGE ? actor->exchange->n_subscriptions : 0);
    struct envelope *envelope;

    for (size_t n = 0; !actor->paused && (envelope = mailbox_oldest(&actor->mailbox));
         n += copies) {
        if (n >= COPIES_PER_TURN) {
            delivery_wake(actor); /* what comes meanwhile waits behind these */
            return;
        }
        mailbox_take(&actor->mailbox, envelope);
        router_hand_on(actor, envelope);
    }
}

/* Senders that wait for room go on once there is some. */
static void unblock_senders(struct actor *actor)
{
    const struct actor_policy policy = actor_policy(actor);

    while (!list_empty(&actor->blocked) &&
           mailbox_has_room(&actor->mailbox, 0, policy.mailbox_max, policy.mailbox_memory_max)) {
        struct list *node = list_first(&actor->blocked);
        struct actor *sender = list_entry(node, struct actor, blocked_link);
        list_unlink(node);
        endpoint_resume(sender->endpoint);
    }
}

void delivery_on_turn(struct loop_deferred *deferred)
{
    struct actor *actor = list_entry(deferred, struct actor, feed);

    switch (actor->kind) {
    case ACTOR_POOL:
        feed_pool(actor);
        break;
    case ACTOR_GROUP:
    case ACTOR_EXCHANGE:
        feed_others(actor);
        break;
    default:
        feed_inbox(actor);
    }
    if (!list_empty(&actor->blocked))
        unblock_senders(actor);
}

void delivery_wake(struct actor *actor)
{
    loop_defer(actor->context->loop, &actor->feed);
}

void delivery_answer(struct actor *actor, struct envelope *envelope)
{
    if (!actor->endpoint) {
        envelope_free(envelope); /* whoever asked is gone */
        return;
    }
    mailbox_add_answer(&actor->mailbox, envelope);
    delivery_wake(actor);
}

/* ---- told by its rings ---- */

void delivery_on_space(struct actor *actor)
{
    struct actor *pool = delivery_pool_of(actor);

    (void)endpoint_advance(actor->endpoint);
    delivery_wake(actor); /* at the end of the turn: jobs come first */
    if (pool && !mailbox_idle(&pool->mailbox))
        delivery_wake(pool);
}

void delivery_on_consumed(struct actor *actor, const struct ring_record *record, uint32_t cursor)
{
    struct list *kept = list_first(&actor->blobs);
    uint32_t flags;

    /* Cursors come round: one that stood still would lie ahead of all others some day. */
    if ((int32_t)(cursor - actor->settled) > 0)
        actor->settled = cursor;
    if (record->kind != PROTOCOL_MESSAGE)
        return;
    actor->counters.consumed++;
    actor->n_inbox--;
    actor->recent[actor->n_recent++ % DELIVERY_RECENT] = delivery_start_of(record, cursor);
    if (kept && list_entry(kept, struct envelope, link)->cursor == cursor) {
        list_unlink(kept);
        envelope_free(list_entry(kept, struct envelope, link));
    }
    memcpy(&flags, (const uint8_t *)record->body + offsetof(struct protocol_message, flags),
           sizeof(flags));
    if (flags & PROTOCOL_MESSAGE_POOL) {
        actor->n_pooled--;
        review_in_pool(actor);
    }
}

/* ---- its rings ---- */

void delivery_attach(struct actor *actor, struct endpoint *endpoint)
{
    actor->endpoint = endpoint;
    actor->settled = 0;
    actor->n_inbox = actor->n_pooled = 0;
    actor->n_recent = 0;
    actor->full = actor->owes = actor->held_up = false;
    actor->control = actor->paused ? MEMORY_CONTROL_PAUSE : 0;
    if (actor->control != 0)
        endpoint_set_control(endpoint, actor->control);
}

void delivery_set_up(struct actor *actor, bool up)
{
    struct actor *pool = delivery_pool_of(actor);

    if (actor->up == up)
        return;
    actor->up = up;
    review_in_pool(actor);
    if (!up)
        return;
    delivery_wake(actor);
    if (pool)
        delivery_wake(pool);
}
