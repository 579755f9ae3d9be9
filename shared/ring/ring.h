/* SPDX-License-Identifier: MIT */
#pragma once

/* Single-producer, single-consumer ring of variable-size records over shared memory.
 *
 * Cursors are free-running 32-bit byte counts; position = cursor & (size - 1). A record is an
 * 8-byte header and a body, 8-aligned and contiguous; where the rest of the ring is too short, a
 * padding record closes it. Each side keeps the cursor it owns in private memory and only publishes
 * it: memory that the peer can write is never read back.
 *
 * The consumer treats the producer as hostile: every field is read once and checked before use.
 * The producer can still change a body that ring_next() has returned: copy it before use. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    _RING_E_SUCCESS,
    RING_E_FULL,  /* no room until the consumer releases some */
    RING_E_EMPTY, /* all published records are consumed */
};

#define RING_KIND_PADDING 0
#define RING_ALIGNMENT    8u

struct ring_header {
    uint32_t size; /* of the body, bytes, without header and alignment */
    uint16_t kind;
    uint16_t reserved; /* zero */
};
_Static_assert(sizeof(struct ring_header) == 8, "layout");

struct ring_producer {
    uint8_t *data;
    uint32_t size;
    uint32_t tail;                 /* next byte to write; published up to `published` */
    uint32_t published;            /* published so far */
    uint32_t head;                 /* cached and checked copy of the consumer's cursor */
    uint32_t padding;              /* bytes to skip before the reserved record */
    uint32_t reserved;             /* bytes of the reserved record, header included; 0 = none */
    _Atomic uint32_t *shared_tail; /* ours, in our memory */
    const _Atomic uint32_t *shared_head; /* the consumer's, in its memory */
};

struct ring_consumer {
    const uint8_t *data;
    uint32_t size;
    uint32_t head;     /* next byte to read */
    uint32_t released; /* released so far */
    uint32_t tail;     /* cached and checked copy of the producer's cursor */
    uint32_t hold;     /* with `holding`: nothing from here on is released */
    bool holding;
    _Atomic uint32_t *shared_head;       /* ours, in our memory */
    const _Atomic uint32_t *shared_tail; /* the producer's, in its memory */
};

struct ring_record {
    const void *body;
    uint32_t size;
    uint16_t kind;
};

/* The largest body for a ring of this size: half the ring minus a header, so that it fits despite
 * padding. */
static inline uint32_t ring_body_max(uint32_t ring_size)
{
    return ring_size / 2 - (uint32_t)sizeof(struct ring_header);
}

/* Both functions continue at the cursors of the ring: at 0 if it is new, else where a predecessor
 * stopped. Records that it had not published are lost; records that it had read but not released
 * are read again. `size` is a power of two, `data` 8-aligned. 0, or -EPROTO if the cursors are not
 * aligned or further apart than the ring is long. */
int ring_producer_init(struct ring_producer *ret, uint8_t *data, uint32_t size,
                       _Atomic uint32_t *shared_tail, const _Atomic uint32_t *shared_head);
int ring_consumer_init(struct ring_consumer *ret, const uint8_t *data, uint32_t size,
                       _Atomic uint32_t *shared_head, const _Atomic uint32_t *shared_tail);

/* Reserves room for a body of `size` bytes; nothing is visible to the consumer until
 * ring_publish(). `*ret` points into the ring and is valid until the next call. A second reserve
 * without a commit replaces the first. 0, RING_E_FULL, -EMSGSIZE above ring_body_max(), or -EPROTO
 * if the consumer's cursor is not aligned, went backwards or is beyond the published end. That
 * cursor is only read if the known room is too small. */
int ring_reserve(struct ring_producer *producer, uint32_t size, void **ret);

/* Completes the reserved record as `kind` (not RING_KIND_PADDING); `size` may be less than was
 * reserved. */
void ring_commit(struct ring_producer *producer, uint16_t kind, uint32_t size);

/* Publishes all committed records. Returns whether there were any. */
bool ring_publish(struct ring_producer *producer);

/* Reads the next record, and moves past it; only ring_release() frees its space. 0, RING_E_EMPTY,
 * or -EPROTO when the producer broke the protocol (cursor out of range or not aligned, a record
 * past the published end, a bad length); the ring must not be used after that. */
int ring_next(struct ring_consumer *consumer, struct ring_record *ret);

/* Frees the space of all records read so far, or with `holding` of records before `hold`. Returns
 * whether there was any. */
bool ring_release(struct ring_consumer *consumer);

/* Reads one of the producer's own committed records, at `*cursor`, which must be the end of a
 * record that is not overwritten yet. Returns 0 with `*cursor` behind the record, or RING_E_EMPTY.
 * Only for rings that no other process can write. */
int ring_look(const struct ring_producer *producer, uint32_t *cursor, struct ring_record *ret);

/* Returns whether ring_next() would find a record or an invalid cursor. Loads the producer's cursor
 * with acquire. */
bool ring_pending(const struct ring_consumer *consumer);
