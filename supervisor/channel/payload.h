/* SPDX-License-Identifier: MIT */
#pragma once

/* A payload in the supervisor: small ones in place, larger ones on the heap, blobs as the sealed
 * descriptor in which they arrived. */

#include "shared/base/cleanup.h"
#include "shared/protocol/payload-wire.h"
#include "supervisor/channel/held-blob.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define PAYLOAD_SMALL 72

struct payload {
    uint64_t size;
    int fd; /* blob; -1 otherwise */
    union {
        struct held_blob *blob;       /* blob: owner of the descriptor; NULL = this payload */
        uint8_t *heap;                /* above PAYLOAD_SMALL, no blob */
        uint8_t small[PAYLOAD_SMALL]; /* up to PAYLOAD_SMALL, no blob */
    };
};

/* clang-format off */
#define PAYLOAD_NULL {.fd = -1}
/* clang-format on */

/* Like PAYLOAD_NULL, but does not clear the room for small payloads. */
static inline void payload_init(struct payload *payload)
{
    payload->size = 0;
    payload->fd = -1;
}

/* Copies the data into an empty payload. Returns 0 or -ENOMEM. */
int payload_set(struct payload *payload, const void *data, size_t size);

/* Like payload_set(), but keeps many bytes in a sealed file in memory, if possible, so that handing
 * the payload over needs no slow copy. For threads other than the loop's, and before the loop runs.
 */
int payload_set_lasting(struct payload *payload, const void *data, size_t size);

/* Reads a checked blob, whose descriptor stays the caller's. Returns 0 or -errno. */
int payload_read(struct payload *payload, int fd, size_t size);

/* Takes over the descriptor of a checked blob. */
void payload_set_blob(struct payload *payload, int fd, uint64_t size);

/* Takes over the reference. */
void payload_set_shared(struct payload *payload, struct held_blob *blob);

/* Copies, or takes another reference to a shared blob. Returns 0 or -errno. */
int payload_copy(struct payload *to, const struct payload *from);

/* Moves; `from` is empty afterwards. */
void payload_move(struct payload *to, struct payload *from);

/* Drops a blob. */
void payload_drop_blob(struct payload *payload);

/* Returns whether the bytes are on the heap. */
static inline bool payload_on_heap(const struct payload *payload)
{
    return payload->size > PAYLOAD_SMALL && payload->fd < 0;
}

/* Inline: most payloads are small or empty. */
static inline void payload_deinit(struct payload *payload)
{
    if (payload->fd >= 0)
        payload_drop_blob(payload);
    else if (payload_on_heap(payload))
        free(payload->heap);
    payload->size = 0;
}

/* Returns the blob with references; NULL = the payload is none. */
static inline struct held_blob *payload_held_blob(const struct payload *payload)
{
    return payload->fd >= 0 ? payload->blob : NULL;
}

/* The bytes in place; NULL for a blob. */
static inline const void *payload_data(const struct payload *payload)
{
    if (payload->fd >= 0)
        return NULL;
    return payload_on_heap(payload) ? payload->heap : payload->small;
}
