/* SPDX-License-Identifier: MIT */
#include "supervisor/message/delivery.h"

#include "supervisor/channel/mailbox.h"
#include "supervisor/context.h"
#include "supervisor/event/complaint.h"
#include "supervisor/group/cell.h"
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
    return actor->kind == ACTOR_SLOT ? actor->slot->cell->actor : NULL;
}

static void review_in_pool(struct actor *actor)
{
    struct actor *pool = delivery_pool_of(actor);

    if (pool)
        pool_review(&pool->pool, actor);
}

bool delivery_takes_messages(const struct actor *actor)
{
    return actor->up && !actor->paused && !actor->waits_for;
}

bool delivery_is_direct(const struct actor *actor)
{
    const struct postbox *postbox = &actor->postbox;

    if (!delivery_takes_messages(actor) || !postbox_idle(postbox))
        return false;
    if (postbox->n_stashed == 0)
        return true;
    /* What it stashes of what it gets counts, too. */
    const struct actor_policy policy = actor_policy(actor);
    return postbox_has_room(postbox, 0, policy.mailbox_max, policy.mailbox_memory_max);
}

/* ---- writing records ---- */

int delivery_send(struct actor *actor, struct letter *letter)
{
    struct payload_wire wire = {.form = PAYLOAD_INLINE};
    int r;

    r = delivery_write(actor, letter, &wire);
    if (r == MAILBOX_E_FULL)
        actor->full = true;
    if (r != 0)
        return r;
    if (letter->kind == PROTOCOL_MESSAGE)
        delivery_note_sent(actor, &(struct protocol_message){.id = letter->id,
                                                             .sender = letter->sender,
                                                             .ask = letter->ask,
                                                             .flags = letter->flags,
                                                             .content.topic = letter->topic});
    if (wire.form == PAYLOAD_INLINE || letter->kind != PROTOCOL_MESSAGE) {
        letter_free(letter);
        return 0;
    }
    /* The descriptor is needed again should the worker die before it has read the message. */
    letter->cursor = actor->mailbox->channel.out.tail;
    list_push_back(&actor->blobs, &letter->link);
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
    if (!actor->held_up || !actor->mailbox || !router_answer_fits(actor, 0))
        return;
    actor->held_up = false;
    mailbox_resume(actor->mailbox);
}

/* Ours is the fault (memory, descriptors): it cannot be handed over, and says so. */
static void give_up(struct actor *actor, struct letter *letter, int error)
{
    const struct router_verdict verdict = {
        .reason = DEAD_NO_MEMORY, .error = -error, .text = strerror(-error)};

    complain(actor, LOG_LEVEL_WARNING, "a message cannot be handed over: %s", strerror(-error));
    router_bury(actor->context, letter, actor, &verdict);
}

/* Whether it went, one way or another. */
static bool feed_one(struct actor *from, struct actor *to, struct letter *letter)
{
    const bool answer = letter->place == LETTER_ANSWERS;
    int r;

    postbox_take(&from->postbox, letter);
    r = delivery_send(to, letter);
    if (r == 0)
        return true;
    if (r < 0 && !to->mailbox->dead) {
        give_up(from, letter, r);
        return true;
    }
    if (answer)
        postbox_add_answer_front(&from->postbox, letter);
    else
        postbox_add_front(&from->postbox, letter);
    return false;
}

/* What needs more room than a message would never find any if each took what there is. */
static bool others_first(const struct actor *actor)
{
    return actor->owes || (actor->kind == ACTOR_SLOT && slot_job_waits(actor->slot));
}

static void feed_inbox(struct actor *actor)
{
    struct letter *letter;

    if (actor->full && others_first(actor))
        return;
    if (actor->mailbox && !actor->mailbox->wants_space)
        actor->full = false;
    while (actor->mailbox && !actor->full &&
           (letter = postbox_next(&actor->postbox, !delivery_takes_messages(actor))))
        if (!feed_one(actor, actor, letter))
            break;
    let_go_on(actor);
    review_in_pool(actor);
}

static void feed_pool(struct actor *actor)
{
    const unsigned batch_max = actor->cell->config->batch_max;
    struct letter *letter;
    struct actor *slot;

    while (!actor->paused && (letter = postbox_oldest(&actor->postbox)) &&
           (slot = pool_pick(&actor->pool, batch_max))) {
        letter->flags |= PROTOCOL_MESSAGE_POOL;
        if (!feed_one(actor, slot, letter))
            review_in_pool(slot);
    }
}

/* Groups and exchanges keep nothing but what comes while they are paused. */
static void feed_others(struct actor *actor)
{
    const size_t copies =
        1 + (actor->kind == ACTOR_EXCHANGE ? actor->exchange->n_subscriptions : 0);
    struct letter *letter;

    for (size_t n = 0; !actor->paused && (letter = postbox_oldest(&actor->postbox)); n += copies) {
        if (n >= COPIES_PER_TURN) {
            delivery_wake(actor); /* what comes meanwhile waits behind these */
            return;
        }
        postbox_take(&actor->postbox, letter);
        router_hand_on(actor, letter);
    }
}

/* Senders that wait for room go on once there is some. */
static void unblock_senders(struct actor *actor)
{
    const struct actor_policy policy = actor_policy(actor);

    while (!list_empty(&actor->blocked) &&
           postbox_has_room(&actor->postbox, 0, policy.mailbox_max, policy.mailbox_memory_max)) {
        struct list *node = list_first(&actor->blocked);
        struct actor *sender = list_entry(node, struct actor, blocked_link);
        list_unlink(node);
        mailbox_resume(sender->mailbox);
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

void delivery_answer(struct actor *actor, struct letter *letter)
{
    if (!actor->mailbox) {
        letter_free(letter); /* whoever asked is gone */
        return;
    }
    postbox_add_answer(&actor->postbox, letter);
    delivery_wake(actor);
}

/* ---- told by its rings ---- */

void delivery_on_space(struct actor *actor)
{
    struct actor *pool = delivery_pool_of(actor);

    (void)mailbox_advance(actor->mailbox);
    delivery_wake(actor); /* at the end of the turn: jobs come first */
    if (pool && !postbox_idle(&pool->postbox))
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
    if (kept && list_entry(kept, struct letter, link)->cursor == cursor) {
        list_unlink(kept);
        letter_free(list_entry(kept, struct letter, link));
    }
    memcpy(&flags, (const uint8_t *)record->body + offsetof(struct protocol_message, flags),
           sizeof(flags));
    if (flags & PROTOCOL_MESSAGE_POOL) {
        actor->n_pooled--;
        review_in_pool(actor);
    }
}

/* ---- its rings ---- */

void delivery_attach(struct actor *actor, struct mailbox *mailbox)
{
    actor->mailbox = mailbox;
    actor->settled = 0;
    actor->n_inbox = actor->n_pooled = 0;
    actor->n_recent = 0;
    actor->full = actor->owes = actor->held_up = false;
    actor->control = actor->paused ? MEMORY_CONTROL_PAUSE : 0;
    if (actor->control != 0)
        mailbox_set_control(mailbox, actor->control);
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
