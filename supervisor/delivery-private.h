/* SPDX-License-Identifier: MIT */
#pragma once

/* Between delivery.c (forth), delivery-recover.c (back) and delivery-record.c (a letter as bytes).
 */

#include "delivery.h"
#include "mailbox.h"

#define DELIVERY_RECENT (sizeof(((struct actor *)0)->recent) / sizeof(uint32_t))

/* The pool of a slot; NULL for others. */
struct actor *delivery_pool_of(const struct actor *actor);

/* Where a record begins whose end is known. */
static inline uint32_t delivery_start_of(const struct ring_record *record, uint32_t end)
{
    const uint32_t size = (uint32_t)sizeof(struct ring_header) + record->size;

    return end - ((size + RING_ALIGNMENT - 1) & ~(RING_ALIGNMENT - 1));
}

/* ---- delivery-record.c ---- */

/*
 * Writes a letter into the inbox as the record that its kind says; `*wire` = how its payload went,
 * if it has one. 0, MAILBOX_E_FULL, or -errno: nothing is written then. The letter stays the
 * caller's.
 */
int delivery_write(struct actor *actor, const struct letter *letter, struct payload_wire *wire);
