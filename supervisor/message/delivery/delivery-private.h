/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Internal interface between delivery-*.c:
 *
 *   delivery.c          from the mailbox to the inbox: a message as a record
 *   delivery-answer.c   answers as whole records
 *   delivery-recover.c  from the inbox back to the mailbox
 *   delivery-look.c     the contents of the inbox
 */

#include "supervisor/channel/endpoint.h"
#include "supervisor/message/delivery/delivery.h"

/* Whether the cursor `a` lies behind `b`; cursors wrap around. */
static inline bool delivery_is_behind(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

static inline uint32_t delivery_gate_of(const struct endpoint *endpoint)
{
    return atomic_load_explicit(endpoint->gate, memory_order_relaxed);
}

/* ---- delivery-answer.c ---- */

/* Write an answer, and the end of a job with its result, which may be lost; `more` as in
 * endpoint_commit_of_many(). Return 0, ENDPOINT_E_FULL or -errno. */
int delivery_write_answer(struct endpoint *endpoint, uint16_t kind, const void *body,
                          uint32_t size);
int delivery_write_end(struct endpoint *endpoint, struct protocol_done *done,
                       const struct payload *result, unsigned more);

/* ---- delivery-recover.c ---- */

/* Notes all messages that a dead worker has consumed; its outbox is read to the end. */
void delivery_settle(struct actor *actor);
