/* SPDX-License-Identifier: MIT */
#include "supervisor/message/delivery/delivery.h"

#include "supervisor/message/actor-log.h"
#include "supervisor/message/dead-letter/undeliverable.h"
#include "supervisor/message/delivery/delivery-private.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/router.h"
#include <errno.h>
#include <string.h>

/* Updates a slot's position among the members of its pool. */
static void review_in_pool(struct actor *actor)
{
    if (actor->pool)
        least_loaded_review(actor->pool->members, actor);
}

/* ---- into the mailbox ---- */

/* A message that is to be enqueued. */
struct arrival {
    struct actor *to;
    struct share *share; /* of its sender's group; NULL = the mailbox is far from full */
    struct actor_policy policy;
    uint64_t bytes;
};

static bool has_room(const struct arrival *arrival)
{
    return mailbox_has_room(&arrival->to->mailbox, arrival->share, arrival->bytes,
                            arrival->policy.mailbox_max, arrival->policy.mailbox_memory_max);
}

/* The oldest of the sender's group if one is counted for that, else the oldest of all. */
static struct envelope *find_oldest(const struct arrival *arrival)
{
    struct list *node = arrival->share ? list_first(&arrival->share->entries[0]) : NULL;

    return node ? list_entry(node, struct envelope, share_link)
                : mailbox_oldest(&arrival->to->mailbox);
}

static void drop_oldest(const struct arrival *arrival)
{
    const struct undeliverable why = {
        .reason = DEAD_DROPPED, .error = ENOBUFS, .text = "dropped for a later one"};
    struct actor *to = arrival->to;
    struct envelope *oldest;

    while (!has_room(arrival) && (oldest = find_oldest(arrival))) {
        mailbox_take(&to->mailbox, oldest);
        undeliverable_end(to->context, oldest, to, &why);
    }
}

/* Returns a reference to the share of the sender's group. NULL as long as the mailbox is not half
 * full and nothing is to be dropped. */
static struct share *share_of_sender(struct actor *to, const struct actor_policy *policy,
                                     uint64_t sender)
{
    struct mailbox *mailbox = &to->mailbox;
    const char *owner;

    if (policy->overflow != CONFIG_OVERFLOW_DROP_OLDEST && mailbox->n < policy->mailbox_max / 2 &&
        mailbox->bytes < policy->mailbox_memory_max / 2)
        return NULL;
    owner = actor_name_of(to->context, sender);
    return share_get(&mailbox->shares, owner, share_owner_size(owner));
}

int delivery_enqueue(struct actor *to, struct envelope *envelope)
{
    const struct undeliverable full = {
        .reason = DEAD_MAILBOX_FULL, .error = ENOBUFS, .text = "the mailbox is full"};
    struct arrival arrival = {
        .to = to, .policy = actor_policy(to), .bytes = envelope_bytes(envelope)};

    arrival.share = share_of_sender(to, &arrival.policy, envelope->sender);
    if (arrival.policy.overflow == CONFIG_OVERFLOW_DROP_OLDEST)
        drop_oldest(&arrival);
    if (!has_room(&arrival)) {
        share_unref(arrival.share);
        return undeliverable_refuse(to, envelope, &full, ROUTER_E_FULL);
    }
    mailbox_add(&to->mailbox, envelope);
    if (arrival.share)
        mailbox_count_for(envelope, arrival.share);
    if (!to->inbox.full)
        actor_wake(to);
    return 0;
}

int delivery_to_inbox(struct actor *actor, struct envelope *envelope)
{
    if (actor_is_direct(actor) && !actor->inbox.full && delivery_send(actor, envelope) == 0)
        return 0;
    return delivery_enqueue(actor, envelope);
}

/* ---- writing records ---- */

static uint32_t content_room(const struct envelope *envelope, uint32_t inline_size)
{
    const uint32_t names = envelope->topic.type_size + envelope->topic.key_size;

    return 24u + ((names + 7u) & ~7u) + inline_size + 1u;
}

static int put_message(void *body, uint32_t room, const struct envelope *envelope,
                       const struct payload_wire *wire)
{
    struct protocol_message message = envelope_message(envelope);

    message.content.payload = *wire;
    return protocol_put_message(body, room, &message);
}

static int put_replied(void *body, uint32_t room, const struct envelope *envelope,
                       const struct payload_wire *wire)
{
    const struct protocol_replied replied = {
        .cookie = envelope->cookie,
        .from = envelope->sender,
        .content = {.topic = envelope->topic, .payload = *wire},
    };

    return protocol_put_replied(body, room, &replied);
}

/* Writes a message, or the reply to an ask, as the record of its kind. */
static int write_content(struct endpoint *endpoint, const struct envelope *envelope,
                         struct payload_wire *wire)
{
    const uint32_t inline_max = endpoint->channel.mine.header->inline_max;
    const bool blob = envelope->payload.fd >= 0 || envelope->payload.size > inline_max;
    const uint32_t room = PROTOCOL_MESSAGE_CONTENT +
                          content_room(envelope, blob ? 0 : (uint32_t)envelope->payload.size);
    void *body;
    int r;

    r = endpoint_reserve(endpoint, room, &body);
    if (r != 0)
        return r;
    r = endpoint_give(endpoint, &envelope->payload, wire);
    if (r != 0)
        return r;
    if (envelope->kind == PROTOCOL_REPLIED)
        r = put_replied(body, room, envelope, wire);
    else
        r = put_message(body, room, envelope, wire);
    if (r < 0)
        return r;
    endpoint_commit(endpoint, envelope->kind, (uint32_t)r);
    return 0;
}

/* Writes a message into the inbox as the record of its kind; `*wire` = its payload in the record,
 * if any. 0, or ENDPOINT_E_FULL or -errno with nothing written. The caller keeps the message. */
static int write_record(struct endpoint *endpoint, const struct envelope *envelope,
                        struct payload_wire *wire)
{
    struct protocol_done done;
    int r;

    if (!envelope->head)
        return write_content(endpoint, envelope, wire);
    if (envelope->kind != PROTOCOL_DONE)
        return delivery_write_answer(endpoint, envelope->kind, envelope->head, envelope->head_size);
    r = protocol_get_done(envelope->head, envelope->head_size, &done);
    return r < 0 ? r : delivery_write_end(endpoint, &done, &envelope->payload, 0);
}

int delivery_send(struct actor *actor, struct envelope *envelope)
{
    struct payload_wire wire = {.form = PAYLOAD_INLINE};
    int r = write_record(actor->inbox.endpoint, envelope, &wire);

    if (r == ENDPOINT_E_FULL)
        actor->inbox.full = true;
    if (r != 0)
        return r;
    if (envelope->kind == PROTOCOL_MESSAGE) {
        const struct protocol_message message = envelope_message(envelope);
        delivery_note_sent(actor, &message);
    }
    if (wire.form == PAYLOAD_INLINE || envelope->kind != PROTOCOL_MESSAGE) {
        envelope_free(envelope);
        return 0;
    }
    /* Keeps the descriptor, in case the worker dies before it has read the message. */
    envelope->cursor = actor->inbox.endpoint->channel.out.tail;
    list_push_back(&actor->blobs, &envelope->link);
    return 0;
}

void delivery_note_sent(struct actor *actor, const struct protocol_message *message)
{
    actor->counters.delivered++;
    actor->inbox.n_messages++;
    if (actor->inbox_watched)
        actor->class->inbox_used(actor);
    if (message->flags & PROTOCOL_MESSAGE_POOL) {
        actor->inbox.n_pooled++;
        review_in_pool(actor);
    }
    if (actor->log != 0)
        actor_log_message(actor, ACTOR_LOG_DISPATCHED, message, NULL);
}

/* ---- feeding ---- */

bool delivery_must_read_first(struct actor *actor)
{
    actor->inbox.held_up = !actor_answer_fits(actor, 0);
    return actor->inbox.held_up;
}

static void resume_outbox(struct actor *actor)
{
    if (!actor->inbox.held_up || !actor->inbox.endpoint || !list_empty(&actor->mailbox.answers))
        return;
    actor->inbox.held_up = false;
    endpoint_resume(actor->inbox.endpoint);
}

/* Out of memory or descriptors. */
static void give_up(struct actor *actor, struct envelope *envelope, int error)
{
    const struct undeliverable why = {
        .reason = DEAD_NO_MEMORY, .error = -error, .text = strerror(-error)};

    actor_log(actor, LOG_LEVEL_WARNING, "a message cannot be delivered: %s", strerror(-error));
    undeliverable_end(actor->context, envelope, actor, &why);
}

/* Moves a message from a mailbox to an inbox. True if it has left the mailbox: sent or lost. */
static bool feed_one(struct actor *from, struct actor *to, struct envelope *envelope)
{
    const bool answer = envelope->place == ENVELOPE_ANSWERS;
    int r;

    mailbox_take(&from->mailbox, envelope);
    r = delivery_send(to, envelope);
    if (r == 0)
        return true;
    if (r < 0 && !to->inbox.endpoint->dead) {
        give_up(from, envelope, r);
        return true;
    }
    if (answer)
        mailbox_add_answer_front(&from->mailbox, envelope);
    else
        mailbox_add_front(&from->mailbox, envelope);
    return false;
}

/* Whether something larger than a message waits for room, which messages must leave. */
static bool is_reserved(const struct actor *actor)
{
    return actor->inbox.owed ||
           (actor->class->inbox_reserved && actor->class->inbox_reserved(actor));
}

void delivery_feed_inbox(struct actor *actor)
{
    struct envelope *envelope;

    if (actor->inbox.full && is_reserved(actor))
        return;
    if (actor->inbox.endpoint && !actor->inbox.endpoint->wants_space)
        actor->inbox.full = false;
    while (actor->inbox.endpoint && !actor->inbox.full &&
           (envelope = mailbox_next(&actor->mailbox, !actor_takes_messages(actor))))
        if (!feed_one(actor, actor, envelope))
            break;
    resume_outbox(actor);
    review_in_pool(actor);
}

/* ---- pools: a message goes to the slot that has the fewest ---- */

int delivery_to_pool(struct actor *actor, struct envelope *envelope)
{
    struct actor *slot = NULL;

    envelope->flags |= PROTOCOL_MESSAGE_POOL;
    if (!actor->paused && mailbox_idle(&actor->mailbox))
        slot = least_loaded_pick(actor->members);
    if (slot && delivery_send(slot, envelope) == 0)
        return 0;
    return delivery_enqueue(actor, envelope);
}

void delivery_feed_pool(struct actor *actor)
{
    struct envelope *envelope;
    struct actor *slot;

    while (!actor->paused && (envelope = mailbox_oldest(&actor->mailbox)) &&
           (slot = least_loaded_pick(actor->members))) {
        envelope->flags |= PROTOCOL_MESSAGE_POOL;
        if (!feed_one(actor, slot, envelope))
            review_in_pool(slot);
    }
}

/* ---- callbacks of the rings ---- */

void delivery_on_space(struct actor *actor)
{
    struct actor *pool = actor->pool;

    (void)endpoint_advance(actor->inbox.endpoint);
    actor_wake(actor); /* at the end of the turn: jobs come first */
    if (pool && !mailbox_idle(&pool->mailbox))
        actor_wake(pool);
}

void delivery_on_consumed(struct actor *actor, const struct ring_record *record, uint32_t cursor)
{
    struct list *kept = list_first(&actor->blobs);
    uint32_t flags;

    /* Cursors wrap around, so `settled` must follow: a stale one would compare as ahead. */
    if ((int32_t)(cursor - actor->inbox.settled) > 0)
        actor->inbox.settled = cursor;
    if (record->kind != PROTOCOL_MESSAGE)
        return;
    actor->counters.consumed++;
    actor->inbox.n_messages--;
    if (kept && list_entry(kept, struct envelope, link)->cursor == cursor) {
        list_unlink(kept);
        envelope_free(list_entry(kept, struct envelope, link));
    }
    memcpy(&flags, (const uint8_t *)record->body + offsetof(struct protocol_message, flags),
           sizeof(flags));
    if (flags & PROTOCOL_MESSAGE_POOL) {
        actor->inbox.n_pooled--;
        review_in_pool(actor);
    }
}

/* ---- its rings ---- */

void delivery_attach(struct actor *actor, struct endpoint *endpoint)
{
    actor->inbox =
        (struct inbox){.endpoint = endpoint, .control = actor->paused ? MEMORY_CONTROL_PAUSE : 0};
    if (actor->inbox.control != 0)
        endpoint_set_control(endpoint, actor->inbox.control);
}

/* Counts messages that the worker has not consumed, as far as the last supervisor knew. */
static void count_messages(struct actor *actor)
{
    const struct endpoint *endpoint = actor->inbox.endpoint;
    uint32_t at = delivery_gate_of(endpoint), flags;
    struct ring_record record;

    while (ring_look(&endpoint->channel.out, &at, &record) == 0) {
        if (record.kind != PROTOCOL_MESSAGE)
            continue;
        memcpy(&flags, (const uint8_t *)record.body + offsetof(struct protocol_message, flags),
               sizeof(flags));
        actor->inbox.n_messages++;
        actor->inbox.n_pooled += (flags & PROTOCOL_MESSAGE_POOL) != 0;
    }
}

void delivery_adopt(struct actor *actor, struct endpoint *endpoint)
{
    delivery_attach(actor, endpoint);
    actor->inbox.adopted = true;
    actor->inbox.settled = delivery_gate_of(endpoint);
    /* The last supervisor may have stopped or paused it. */
    endpoint_set_control(endpoint, actor->inbox.control);
    count_messages(actor);
}

void delivery_set_up(struct actor *actor, bool up)
{
    struct actor *pool = actor->pool;

    if (actor->up == up)
        return;
    actor->up = up;
    review_in_pool(actor);
    if (!up)
        return;
    actor_wake(actor);
    if (pool)
        actor_wake(pool);
}

void delivery_pause(struct actor *actor)
{
    struct inbox *inbox = &actor->inbox;

    actor->paused = true;
    if (inbox->endpoint)
        endpoint_set_control(inbox->endpoint, inbox->control |= MEMORY_CONTROL_PAUSE);
}

void delivery_resume(struct actor *actor)
{
    struct inbox *inbox = &actor->inbox;

    actor->paused = false;
    if (inbox->endpoint)
        endpoint_set_control(inbox->endpoint, inbox->control &= ~(uint32_t)MEMORY_CONTROL_PAUSE);
    if (actor->class->inbox_used)
        actor->class->inbox_used(actor);
    actor_wake(actor);
}
