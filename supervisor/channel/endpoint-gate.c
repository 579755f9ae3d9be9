/* SPDX-License-Identifier: MIT */
/* Follows the peer's consumption of our records. */
#include "supervisor/channel/endpoint-private.h"

/* Returns whether all reports about our records up to the mark are read. While reading is suspended
 * they are read ahead; otherwise the record that waits for room would itself prevent it. This is
 * done at the end of the turn, since the caller may be handling a record. */
static bool endpoint_has_read_to_mark(struct endpoint *endpoint)
{
    if (endpoint->reading)
        return false; /* the current record may be a report about ours; advances afterwards */
    if ((int32_t)(endpoint->channel.in.head - endpoint->check_tail) >= 0)
        return true;
    if (endpoint->suspended)
        loop_defer(endpoint->loop, &endpoint->read_ahead);
    return false;
}

static bool endpoint_look_at_head(struct endpoint *endpoint)
{
    const struct channel *channel = &endpoint->channel;
    /* Partner: the release store in the peer's ring_release(). */
    const uint32_t head = atomic_load_explicit(&channel->their_words->head, memory_order_acquire);
    const uint32_t gate = atomic_load_explicit(endpoint->gate, memory_order_relaxed);
    const uint32_t ahead = head - gate;

    if (ahead == 0)
        return false;
    if ((head & (RING_ALIGNMENT - 1)) != 0 || ahead > channel->out.published - gate) {
        endpoint_break(endpoint, "read cursor out of range");
        return false;
    }
    endpoint->check_head = head;
    /* Partner: ring_publish(). Loaded after its head, so earlier records are included. */
    endpoint->check_tail =
        atomic_load_explicit(&channel->theirs.header->tail, memory_order_acquire);
    endpoint->checking = true;
    return true;
}

/* The peer's cursor must be at the end of a record. */
bool endpoint_pass(struct endpoint *endpoint)
{
    uint32_t at = atomic_load_explicit(endpoint->gate, memory_order_relaxed);
    struct ring_record record;

    endpoint->checking = false;
    while ((int32_t)(endpoint->check_head - at) > 0) {
        if (ring_look(&endpoint->channel.out, &at, &record) != 0)
            break;
        if (endpoint->handler->consumed && (int32_t)(endpoint->check_head - at) >= 0)
            endpoint->handler->consumed(endpoint, &record, at);
    }
    if (at != endpoint->check_head) {
        endpoint_break(endpoint, "read cursor within a record");
        return false;
    }
    /* Read by our own ring_reserve(), and by memory_renew() in the next supervisor. */
    atomic_store_explicit(endpoint->gate, at, memory_order_relaxed);
    /* Calls space() in the next turn, not from within this call. */
    if (endpoint->wants_space) {
        endpoint->space_due = true;
        endpoint_heat(endpoint);
    }
    return true;
}

bool endpoint_advance(struct endpoint *endpoint)
{
    if (endpoint->dead || (!endpoint->checking && !endpoint_look_at_head(endpoint)))
        return false;
    return endpoint_has_read_to_mark(endpoint) && endpoint_pass(endpoint);
}
