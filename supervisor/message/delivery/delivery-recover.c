/* SPDX-License-Identifier: MIT */

/* Recovers the messages that a dead worker was handling, or had in its inbox or stash; swaps the
 * workers of two actors. */

#include "shared/base/cleanup.h"
#include "supervisor/event/death.h"
#include "supervisor/message/dead-letter/undeliverable.h"
#include "supervisor/message/delivery/delivery-private.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/monitor.h"
#include <errno.h>

/* Finds the kept message at this cursor; frees those before it, since reports come in order. */
static struct envelope *take_kept(struct actor *actor, uint32_t cursor)
{
    list_until_empty (envelope, &actor->blobs, struct envelope, link) {
        if (delivery_is_behind(envelope->cursor, cursor))
            return NULL;
        list_unlink(&envelope->link);
        if (envelope->cursor == cursor)
            return envelope;
        envelope_free(envelope);
    }
    return NULL;
}

static struct envelope *envelope_of(struct actor *actor, const struct protocol_message *message,
                                    uint32_t cursor)
{
    struct envelope *envelope;

    if (message->content.payload.form == PAYLOAD_BLOB)
        return take_kept(actor, cursor);
    envelope = envelope_new(PROTOCOL_MESSAGE, &message->content.topic);
    if (!envelope)
        return NULL;
    if (payload_set(&envelope->payload, message->content.payload.data,
                    (size_t)message->content.payload.size) < 0)
        return envelope_free(envelope);
    envelope->id = message->id;
    envelope->sender = message->sender;
    envelope->ask = message->ask;
    envelope->timer = message->timer;
    envelope->sent_at = message->sent_at;
    envelope->flags = message->flags;
    envelope->attempt = message->attempt;
    return envelope;
}

/* Makes room, so the actor and its pool are fed. */
static void take_stashed(struct actor *actor, struct envelope *envelope)
{
    struct actor *pool = actor->pool;

    mailbox_take(&actor->mailbox, envelope);
    actor_wake(actor);
    if (pool && !mailbox_idle(&pool->mailbox))
        actor_wake(pool);
}

/* The worker names a message that it does not have. If it was adopted, the last supervisor may have
 * had a copy, which is lost. */
static int unknown(const struct actor *actor)
{
    return actor->inbox.adopted ? -ENOMEM : -EBADMSG;
}

int delivery_claim(struct actor *actor, uint64_t id, struct envelope **ret)
{
    const uint32_t gate = delivery_gate_of(actor->inbox.endpoint);
    uint32_t at = delivery_is_behind(actor->inbox.settled, gate) ? actor->inbox.settled : gate;
    struct protocol_message message;
    struct ring_record record;

    *ret = mailbox_stashed(&actor->mailbox, id);
    if (*ret) {
        take_stashed(actor, *ret);
        return 0;
    }
    /* Forward only, so that all reports together pass each record once. */
    while (ring_look(&actor->inbox.endpoint->channel.out, &at, &record) == 0) {
        if (record.kind != PROTOCOL_MESSAGE ||
            protocol_get_message(record.body, record.size, &message) < 0 || message.id != id)
            continue;
        actor->inbox.settled = at;
        *ret = envelope_of(actor, &message, at);
        if (!*ret)
            undeliverable_lose(actor, message.ask);
        return *ret ? 0 : -ENOMEM;
    }
    return unknown(actor);
}

int delivery_stash(struct actor *actor, const struct protocol_stash *stash)
{
    struct envelope *envelope = mailbox_stashed(&actor->mailbox, stash->message);
    int r;

    if (!envelope) {
        r = delivery_claim(actor, stash->message, &envelope);
        if (r < 0)
            return r;
        mailbox_add_stash(&actor->mailbox, envelope);
    }
    mailbox_set_in_hand(&actor->mailbox, envelope, stash->flags & PROTOCOL_STASH_IN_HAND);
    return 0;
}

int delivery_unstash(struct actor *actor, uint64_t id)
{
    struct envelope *envelope = mailbox_stashed(&actor->mailbox, id);

    if (!envelope)
        return unknown(actor);
    take_stashed(actor, envelope);
    envelope_free(envelope);
    return 0;
}

void delivery_settle(struct actor *actor)
{
    struct endpoint *endpoint = actor->inbox.endpoint;
    uint32_t at = delivery_gate_of(endpoint);
    struct ring_record record;
    /* Partner: the release store in the peer's ring_release(). */
    const uint32_t head =
        atomic_load_explicit(&endpoint->channel.their_words->head, memory_order_acquire);

    while (delivery_is_behind(head, at)) {
        uint32_t next = at;
        if (ring_look(&endpoint->channel.out, &next, &record) != 0 ||
            delivery_is_behind(next, head))
            break;
        delivery_on_consumed(actor, &record, next);
        at = next;
    }
    atomic_store_explicit(endpoint->gate, at, memory_order_relaxed);
    endpoint->checking = false;
}

static bool had_in_hand(const struct death *death, const void *message)
{
    return death_had_in_hand(death, *(const uint64_t *)message);
}

/* Finds the deaths of workers that were handling the message. Returns their number. There is no
 * search for messages that this death does not list, which may be many. */
static size_t find_killed(const struct actor *actor, const struct envelope *envelope,
                          struct death *death, struct death *ret[DEAD_LETTER_DEATHS_MAX])
{
    size_t n = 0;

    if (!death || death_had_in_hand(death, envelope->id))
        n = death_log_find(actor->context->deaths, had_in_hand, &envelope->id, ret,
                           DEAD_LETTER_DEATHS_MAX);
    if (n > 0 || !death)
        return n;
    ret[0] = death;
    return 1;
}

/* Puts a message that was being handled into `back` or the error queue, by OnCrash=. */
static void retry_or_fail(struct actor *actor, struct envelope *envelope, struct list *back,
                          struct death *death)
{
    const struct actor_policy policy = actor_policy(actor);
    struct death *deaths[DEAD_LETTER_DEATHS_MAX];
    struct actor *self = actor_self(actor);

    envelope->attempt++;
    envelope->in_hand = false;
    if (policy.on_crash == CONFIG_ON_CRASH_RETRY && envelope->attempt <= policy.message_retries) {
        envelope->flags |= PROTOCOL_MESSAGE_REDELIVERED;
        self->counters.redelivered++;
        list_push_back(back, &envelope->link);
        return;
    }
    const struct undeliverable why = {
        .reason = DEAD_CRASH,
        .error = ECONNRESET,
        .text = death ? death->detail : NULL,
        .deaths = deaths,
        .n_deaths = find_killed(actor, envelope, death, deaths),
    };
    undeliverable_end(actor->context, envelope, self, &why);
}

static void collect_stash(struct actor *actor, struct list *back, struct death *death)
{
    list_until_empty (envelope, &actor->mailbox.stash, struct envelope, link) {
        mailbox_take(&actor->mailbox, envelope);
        if (envelope->in_hand)
            retry_or_fail(actor, envelope, back, death);
        else
            list_push_back(back, &envelope->link);
    }
    actor_wake(actor); /* senders may wait for the room, and a stopped slot is not fed */
}

static void collect_ring(struct actor *actor, struct list *back, struct death *death)
{
    const struct endpoint *endpoint = actor->inbox.endpoint;
    uint32_t at = delivery_gate_of(endpoint);
    /* Partner: the worker's store before each handler. Compared, not followed. */
    const uint32_t taken =
        atomic_load_explicit(&endpoint->channel.theirs.header->taken, memory_order_relaxed);
    struct protocol_message message;
    struct ring_record record;

    while (ring_look(&endpoint->channel.out, &at, &record) == 0) {
        struct envelope *envelope;

        if (record.kind != PROTOCOL_MESSAGE || !delivery_is_behind(at, actor->inbox.settled) ||
            protocol_get_message(record.body, record.size, &message) < 0)
            continue;
        envelope = envelope_of(actor, &message, at);
        if (!envelope) {
            undeliverable_lose(actor, message.ask);
            continue;
        }
        if (taken == at)
            retry_or_fail(actor, envelope, back, death);
        else
            list_push_back(back, &envelope->link);
    }
}

void delivery_recover(struct actor *actor, struct death *death)
{
    struct actor *pool = actor->pool, *self = actor_self(actor);
    struct list back = LIST_INIT(back);

    delivery_set_up(actor, false);
    ask_end_all(actor);
    monitor_end_all(actor);
    (void)delivery_drop_answers(actor, SIZE_MAX);
    list_unlink(&actor->blocked_link);
    list_unlink(&actor->routed_link);
    if (!actor->inbox.endpoint)
        return;
    delivery_settle(actor);
    collect_stash(actor, &back, death);
    collect_ring(actor, &back, death);
    /* Last one first, since each is put in front of the others. */
    while (!list_empty(&back)) {
        struct envelope *envelope = list_entry(back.prev, struct envelope, link);
        struct actor *to = pool && (envelope->flags & PROTOCOL_MESSAGE_POOL) ? pool : self;

        list_unlink(&envelope->link);
        mailbox_add_front(&to->mailbox, envelope);
        if (to != actor)
            actor_wake(to);
    }
    list_until_empty (envelope, &actor->blobs, struct envelope, link) {
        list_unlink(&envelope->link);
        envelope_free(envelope);
    }
    actor->inbox.n_messages = actor->inbox.n_pooled = 0;
    actor->inbox.endpoint = NULL;
    if (self == actor)
        return;
    self->counters.consumed += actor->counters.consumed;
    actor->counters.consumed = 0;
    actor_release_place(actor);
}

/* ---- standbys ---- */

static void swap_workers(struct actor *a, struct actor *b)
{
    actor_unblock(a);
    actor_unblock(b);
    SWAP(a->inbox, b->inbox);
    list_swap(&a->blobs, &b->blobs);
    mailbox_swap_worker(&a->mailbox, &b->mailbox);
    ask_swap_all(a, b);
    monitor_swap_all(a, b);
}

void delivery_swap(struct actor *standby, bool dying)
{
    struct actor *place = standby->place;
    const bool wait = delivery_has_unhandled(place, dying);

    delivery_set_up(place, false);
    delivery_set_up(standby, false);
    swap_workers(place, standby);
    standby->paused = place->paused;
    if (place->paused)
        delivery_pause(place);
    place->waits_for = wait ? standby : NULL;
    actor_wake(place);
    actor_wake(standby);
}
