/* SPDX-License-Identifier: MIT */

/* Looks at an actor's inbox and its worker's consumption. */

#include "supervisor/message/delivery/delivery-private.h"
#include <string.h>

bool delivery_has_unhandled(const struct actor *actor, bool begun_too)
{
    const struct endpoint *endpoint = actor->inbox.endpoint;
    struct ring_record record;
    uint32_t at, head, taken, flags;

    if (!endpoint)
        return false;
    at = delivery_gate_of(endpoint);
    /* Partners: the worker's stores around each handler. Compared, not followed. */
    head = atomic_load_explicit(&endpoint->channel.their_words->head, memory_order_acquire);
    taken = atomic_load_explicit(&endpoint->channel.theirs.header->taken, memory_order_relaxed);
    while (ring_look(&endpoint->channel.out, &at, &record) == 0) {
        if (record.kind != PROTOCOL_MESSAGE || !delivery_is_behind(at, actor->inbox.settled) ||
            !delivery_is_behind(at, head) || (at == taken && !begun_too))
            continue;
        memcpy(&flags, (const uint8_t *)record.body + offsetof(struct protocol_message, flags),
               sizeof(flags));
        if (!(flags & PROTOCOL_MESSAGE_POOL))
            return true;
    }
    return begun_too && actor->mailbox.n_in_hand > 0;
}

static uint64_t count_unnoticed(const struct endpoint *endpoint)
{
    uint32_t at = delivery_gate_of(endpoint);
    struct ring_record record;
    uint64_t n = 0;
    /* Partner: the release store in the peer's ring_release(). Compared, not followed. */
    const uint32_t head =
        atomic_load_explicit(&endpoint->channel.their_words->head, memory_order_acquire);

    while (delivery_is_behind(head, at) && ring_look(&endpoint->channel.out, &at, &record) == 0)
        n += record.kind == PROTOCOL_MESSAGE && !delivery_is_behind(at, head);
    return n;
}

static uint64_t count_consumed(const struct actor *actor)
{
    return actor->counters.consumed +
           (actor->inbox.endpoint ? count_unnoticed(actor->inbox.endpoint) : 0);
}

uint64_t delivery_consumed(const struct actor *actor)
{
    uint64_t n = count_consumed(actor);

    list_for_each (node, &actor->standbys)
        n += count_consumed(list_entry(node, struct actor, standby_link));
    return n;
}

bool delivery_is_quiet(const struct actor *actor)
{
    const struct endpoint *endpoint = actor->inbox.endpoint;

    if (!mailbox_idle(&actor->mailbox) || actor->mailbox.n_stashed > 0)
        return false;
    return !endpoint || endpoint->dead ||
           atomic_load_explicit(&endpoint->channel.their_words->head, memory_order_relaxed) ==
               endpoint->channel.out.tail;
}

/* Adds stashed messages that are being handled, which have left the inbox. Returns the new number.
 */
static size_t add_waiting(const struct actor *actor, struct delivery_taken *ret, size_t n,
                          size_t max)
{
    list_for_each_entry (envelope, &actor->mailbox.stash, struct envelope, link) {
        if (n == max)
            break;
        if (envelope->in_hand && !(n > 0 && ret[0].id == envelope->id))
            ret[n++] = (struct delivery_taken){.id = envelope->id,
                                               .sender = envelope->sender,
                                               .sent_at = envelope->sent_at,
                                               .topic = envelope->topic};
    }
    return n;
}

size_t delivery_list_in_hand(struct actor *actor, struct delivery_taken *ret, size_t max)
{
    const struct endpoint *endpoint = actor->inbox.endpoint;
    struct protocol_message message;
    struct ring_record record;
    uint32_t at;
    size_t n = 0;

    delivery_settle(actor);
    at = delivery_gate_of(endpoint);
    /* Partner: the worker's store before each handler. Compared, not followed. */
    if (ring_look(&endpoint->channel.out, &at, &record) == 0 && record.kind == PROTOCOL_MESSAGE &&
        at == atomic_load_explicit(&endpoint->channel.theirs.header->taken, memory_order_relaxed) &&
        protocol_get_message(record.body, record.size, &message) == 0)
        ret[n++] = (struct delivery_taken){.id = message.id,
                                           .sender = message.sender,
                                           .sent_at = message.sent_at,
                                           .topic = message.content.topic};
    return add_waiting(actor, ret, n, max);
}
