/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A payload as the supervisor keeps it: small ones in place, larger ones on the heap, blobs as the
 * sealed descriptor they came in.
 */

#include "shared/cleanup.h"
#include "shared/payload.h"
#include "supervisor/channel/held-blob.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define PARCEL_SMALL 96

struct parcel {
    uint64_t size;
    int fd;                 /* blob; -1 otherwise */
    struct held_blob *blob; /* whose descriptor that is; NULL = our own */
    uint8_t *heap;          /* NULL if small or blob */
    uint8_t small[PARCEL_SMALL];
};

/* clang-format off */
#define PARCEL_NULL {.fd = -1}
/* clang-format on */

/* The same as PARCEL_NULL, without clearing the room for small ones. */
static inline void parcel_init(struct parcel *parcel)
{
    parcel->size = 0;
    parcel->fd = -1;
    parcel->blob = NULL;
    parcel->heap = NULL;
}

/* Copies. 0 or -ENOMEM; the parcel is empty then. The parcel must be null or have been
 * deinitialised. */
int parcel_set(struct parcel *parcel, const void *data, size_t size);

/* The bytes of a checked blob; its descriptor stays the caller's. 0, -ENOMEM, or -errno. */
int parcel_read(struct parcel *parcel, int fd, size_t size);

/* Takes a checked blob's descriptor over. */
void parcel_set_blob(struct parcel *parcel, int fd, uint64_t size);

/* Takes a reference over. */
void parcel_set_shared(struct parcel *parcel, struct held_blob *blob);

/* With the same bytes; of a shared blob another reference. 0, -ENOMEM, or -errno. */
int parcel_copy(struct parcel *to, const struct parcel *from);

/* Moves; `from` is empty afterwards. */
void parcel_move(struct parcel *to, struct parcel *from);

/* Lets go of a blob. */
void parcel_drop_blob(struct parcel *parcel);

/* Inline, as the next one: most parcels are small or empty, and every job has two. */
static inline void parcel_deinit(struct parcel *parcel)
{
    if (parcel->fd >= 0)
        parcel_drop_blob(parcel);
    if (parcel->heap)
        free(TAKE_PTR(parcel->heap));
    parcel->size = 0;
}

/* The bytes in place; NULL for a blob. */
static inline const void *parcel_data(const struct parcel *parcel)
{
    if (parcel->fd >= 0)
        return NULL;
    return parcel->heap ? parcel->heap : parcel->small;
}
