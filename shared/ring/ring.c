/* SPDX-License-Identifier: MIT */
#include "shared/ring/ring.h"
#include "shared/base/fault.h"
#include <assert.h>
#include <errno.h>
#include <string.h>

#define HEADER_SIZE ((uint32_t)sizeof(struct ring_header))

/* Bytes a record with this body takes. Cannot overflow for bodies up to ring_body_max(). */
static inline uint32_t footprint(uint32_t body_size)
{
    return (HEADER_SIZE + body_size + RING_ALIGNMENT - 1) & ~(RING_ALIGNMENT - 1);
}

/* A header is stored and loaded as one 64-bit word. So the consumer checks and uses the same value,
 * even if the producer changes it at the same time. Relaxed: the cursor orders them. Partner of
 * store_header() is load_header(). */
static inline void store_header(uint8_t *at, uint32_t body_size, uint16_t kind)
{
    struct ring_header header = {.size = body_size, .kind = kind};
    uint64_t word;

    memcpy(&word, &header, sizeof(word));
    atomic_store_explicit((_Atomic uint64_t *)(void *)at, word, memory_order_relaxed);
}

static inline struct ring_header load_header(const uint8_t *at)
{
    struct ring_header header;
    uint64_t word =
        atomic_load_explicit((const _Atomic uint64_t *)(const void *)at, memory_order_relaxed);

    memcpy(&header, &word, sizeof(header));
    return header;
}

static bool cursors_valid(uint32_t tail, uint32_t head, uint32_t size)
{
    return ((tail | head) & (RING_ALIGNMENT - 1)) == 0 && tail - head <= size;
}

int ring_producer_init(struct ring_producer *ret, uint8_t *data, uint32_t size,
                       _Atomic uint32_t *shared_tail, const _Atomic uint32_t *shared_head)
{
    /* Partners: ring_publish() of a predecessor, which is gone, and ring_release(). */
    uint32_t tail = atomic_load_explicit(shared_tail, memory_order_relaxed);
    uint32_t head = atomic_load_explicit(shared_head, memory_order_acquire);

    if (!cursors_valid(tail, head, size))
        return -EPROTO;
    *ret = (struct ring_producer){
        .data = data,
        .size = size,
        .tail = tail,
        .published = tail,
        .head = head,
        .shared_tail = shared_tail,
        .shared_head = shared_head,
    };
    return 0;
}

int ring_consumer_init(struct ring_consumer *ret, const uint8_t *data, uint32_t size,
                       _Atomic uint32_t *shared_head, const _Atomic uint32_t *shared_tail)
{
    /* Partners: ring_release() of a predecessor, which is gone, and ring_publish(). */
    uint32_t head = atomic_load_explicit(shared_head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(shared_tail, memory_order_acquire);

    if (!cursors_valid(tail, head, size))
        return -EPROTO;
    *ret = (struct ring_consumer){
        .data = data,
        .size = size,
        .head = head,
        .released = head,
        .tail = tail,
        .shared_head = shared_head,
        .shared_tail = shared_tail,
    };
    return 0;
}

/* Returns whether `need` bytes are free behind the tail. Loads the consumer's cursor, a shared
 * cache line, only if the cached value does not suffice. */
static int find_room(struct ring_producer *producer, uint32_t need)
{
    uint32_t head;

    if (producer->size - (producer->tail - producer->head) >= need)
        return 0;

    /* Partner: ring_release(). Acquire, so that the consumer has read what is now overwritten. */
    head = atomic_load_explicit(producer->shared_head, memory_order_acquire);
    if ((head & (RING_ALIGNMENT - 1)) != 0 ||
        head - producer->head > producer->published - producer->head)
        return -EPROTO;
    producer->head = head;
    return producer->size - (producer->tail - head) >= need ? 0 : RING_E_FULL;
}

int ring_reserve(struct ring_producer *producer, uint32_t size, void **ret)
{
    uint32_t position = producer->tail & (producer->size - 1);
    uint32_t to_end = producer->size - position;
    uint32_t need, padding;
    int r;

    producer->reserved = 0;
    if (size > ring_body_max(producer->size))
        return -EMSGSIZE;
    need = footprint(size);
    padding = need > to_end ? to_end : 0;
    r = find_room(producer, padding + need);
    if (r != 0)
        return r;

    producer->padding = padding;
    producer->reserved = need;
    if (padding > 0)
        position = 0;
    *ret = producer->data + position + HEADER_SIZE;
    FAULT_POINT("ring.reserve.end");
    return 0;
}

void ring_commit(struct ring_producer *producer, uint16_t kind, uint32_t size)
{
    uint32_t mask = producer->size - 1;

    assert(kind != RING_KIND_PADDING);
    assert(producer->reserved > 0 && size <= producer->reserved - HEADER_SIZE);

    if (producer->padding > 0) {
        FAULT_POINT("ring.commit.before-padding");
        store_header(producer->data + (producer->tail & mask), producer->padding - HEADER_SIZE,
                     RING_KIND_PADDING);
        producer->tail += producer->padding;
        producer->padding = 0;
    }
    FAULT_POINT("ring.commit.before-header");
    store_header(producer->data + (producer->tail & mask), size, kind);
    producer->tail += footprint(size);
    producer->reserved = 0;
    FAULT_POINT("ring.commit.end");
}

bool ring_publish(struct ring_producer *producer)
{
    if (producer->tail == producer->published)
        return false;
    FAULT_POINT("ring.publish.before-tail");
    /* Partners: load_tail() and ring_pending(). Release, so that headers and bodies come with it.
     */
    atomic_store_explicit(producer->shared_tail, producer->tail, memory_order_release);
    producer->published = producer->tail;
    FAULT_POINT("ring.publish.end");
    return true;
}

int ring_look(const struct ring_producer *producer, uint32_t *cursor, struct ring_record *ret)
{
    while (*cursor != producer->tail) {
        const uint8_t *at = producer->data + (*cursor & (producer->size - 1));
        struct ring_header header = load_header(at);

        assert(producer->tail - *cursor <= producer->size);
        *cursor += footprint(header.size);
        if (header.kind == RING_KIND_PADDING)
            continue;
        *ret = (struct ring_record){
            .body = at + HEADER_SIZE, .size = header.size, .kind = header.kind};
        return 0;
    }
    return RING_E_EMPTY;
}

/* Loads the producer's cursor when all known records have been read. It may be at most a ring's
 * length beyond what was released, so a consumer reads a bounded amount between two releases. */
static int load_tail(struct ring_consumer *consumer)
{
    /* Partner: ring_publish(). */
    uint32_t tail = atomic_load_explicit(consumer->shared_tail, memory_order_acquire);

    if (tail == consumer->head)
        return RING_E_EMPTY;
    if ((tail & (RING_ALIGNMENT - 1)) != 0 ||
        tail - consumer->head > consumer->size - (consumer->head - consumer->released))
        return -EPROTO;
    consumer->tail = tail;
    return 0;
}

/* A padding record ends exactly at the end of the ring, and is shorter than the record after it,
 * which did not fit. */
static bool padding_valid(struct ring_header header, uint32_t to_end, uint32_t available,
                          uint32_t ring_size)
{
    return header.size == to_end - HEADER_SIZE && header.reserved == 0 && to_end <= available &&
           to_end < ring_size / 2;
}

int ring_next(struct ring_consumer *consumer, struct ring_record *ret)
{
    for (;;) {
        uint32_t position = consumer->head & (consumer->size - 1);
        uint32_t to_end = consumer->size - position;
        uint32_t available;
        struct ring_header header;

        if (consumer->head == consumer->tail) {
            int r = load_tail(consumer);
            if (r != 0)
                return r;
        }
        /* There is at least one header before the end of the ring, since cursors are aligned. */
        available = consumer->tail - consumer->head;
        header = load_header(consumer->data + position);

        if (header.kind == RING_KIND_PADDING) {
            if (!padding_valid(header, to_end, available, consumer->size))
                return -EPROTO;
            consumer->head += to_end;
            continue;
        }
        if (header.reserved != 0 || header.size > ring_body_max(consumer->size) ||
            footprint(header.size) > available || footprint(header.size) > to_end)
            return -EPROTO;

        *ret = (struct ring_record){
            .body = consumer->data + position + HEADER_SIZE,
            .size = header.size,
            .kind = header.kind,
        };
        consumer->head += footprint(header.size);
        FAULT_POINT("ring.next.end");
        return 0;
    }
}

bool ring_release(struct ring_consumer *consumer)
{
    const uint32_t head = consumer->holding ? consumer->hold : consumer->head;

    if (head == consumer->released)
        return false;
    FAULT_POINT("ring.release.before-head");
    /* Partner: find_room(). Release, so that our reads are over before the producer writes there.
     */
    atomic_store_explicit(consumer->shared_head, head, memory_order_release);
    consumer->released = head;
    FAULT_POINT("ring.release.end");
    return true;
}

bool ring_pending(const struct ring_consumer *consumer)
{
    /* Partner: ring_publish(). */
    return consumer->head != consumer->tail ||
           atomic_load_explicit(consumer->shared_tail, memory_order_acquire) != consumer->head;
}
