/* SPDX-License-Identifier: MIT */
#pragma once

/* Between delivery.c (forth) and delivery-recover.c (back). */

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
