/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Internal interface between delivery-*.c:
 *
 *   delivery.c          from the mailbox to the inbox
 *   delivery-pool.c     from a pool's mailbox to the inbox of one of its slots
 *   delivery-record.c   a message as a record
 *   delivery-recover.c  from the inbox back to the mailbox
 *   delivery-look.c     what is in the inbox
 */

#include "supervisor/channel/endpoint.h"
#include "supervisor/message/delivery/delivery.h"

/* Where a record begins whose end is known. */
static inline uint32_t delivery_start_of(const struct ring_record *record, uint32_t end)
{
    const uint32_t size = (uint32_t)sizeof(struct ring_header) + record->size;

    return end - ((size + RING_ALIGNMENT - 1) & ~(RING_ALIGNMENT - 1));
}

/* Whether the free-running cursor `a` lies behind `b`. */
static inline bool delivery_is_behind(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

static inline uint32_t delivery_gate_of(const struct endpoint *endpoint)
{
    return atomic_load_explicit(&endpoint->gate, memory_order_relaxed);
}

/* ---- delivery.c ---- */

/*
 * Moves a message from the mailbox of `from` to the inbox of `to`. Whether it has left the mailbox:
 * delivered, or given up.
 */
bool delivery_feed_one(struct actor *from, struct actor *to, struct envelope *envelope);
/* Updates a slot's place among the members of its pool. */
void delivery_review_in_pool(struct actor *actor);

/* ---- delivery-recover.c ---- */

/* Takes note of all that a dead worker has consumed; everything it said has been read. */
void delivery_settle(struct actor *actor);

/* ---- delivery-record.c ---- */

/*
 * Writes a message into the inbox as the record that its kind says; `*wire` = how its payload went,
 * if it has one. 0, ENDPOINT_E_FULL, or -errno: nothing is written then. The message stays the
 * caller's.
 */
int delivery_write(struct actor *actor, const struct envelope *envelope, struct payload_wire *wire);
