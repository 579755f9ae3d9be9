/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A payload as the supervisor keeps it: small ones in place, larger ones on the heap, blobs as the
 * sealed descriptor they came in.
 */

#include "shared/base/cleanup.h"
#include "shared/protocol/payload.h"
#include "supervisor/channel/held-blob.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define PAYLOAD_SMALL 96

struct payload {
    uint64_t size;
    int fd;                 /* blob; -1 otherwise */
    struct held_blob *blob; /* whose descriptor that is; NULL = our own */
    uint8_t *heap;          /* NULL if small or blob */
    uint8_t small[PAYLOAD_SMALL];
};

/* clang-format off */
#define PAYLOAD_NULL {.fd = -1}
/* clang-format on */

/* The same as PAYLOAD_NULL, without clearing the room for small ones. */
static inline void payload_init(struct payload *payload)
{
    payload->size = 0;
    payload->fd = -1;
    payload->blob = NULL;
    payload->heap = NULL;
}

/* Copies. 0 or -ENOMEM; the payload is empty then. The payload must be null or have been
 * deinitialised. */
int payload_set(struct payload *payload, const void *data, size_t size);

/* The bytes of a checked blob; its descriptor stays the caller's. 0, -ENOMEM, or -errno. */
int payload_read(struct payload *payload, int fd, size_t size);

/* Takes a checked blob's descriptor over. */
void payload_set_blob(struct payload *payload, int fd, uint64_t size);

/* Takes a reference over. */
void payload_set_shared(struct payload *payload, struct held_blob *blob);

/* With the same bytes; of a shared blob another reference. 0, -ENOMEM, or -errno. */
int payload_copy(struct payload *to, const struct payload *from);

/* Moves; `from` is empty afterwards. */
void payload_move(struct payload *to, struct payload *from);

/* Lets go of a blob. */
void payload_drop_blob(struct payload *payload);

/* Inline, as the next one: most payloads are small or empty, and every job has two. */
static inline void payload_deinit(struct payload *payload)
{
    if (payload->fd >= 0)
        payload_drop_blob(payload);
    if (payload->heap)
        free(TAKE_PTR(payload->heap));
    payload->size = 0;
}

/* The bytes in place; NULL for a blob. */
static inline const void *payload_data(const struct payload *payload)
{
    if (payload->fd >= 0)
        return NULL;
    return payload->heap ? payload->heap : payload->small;
}
