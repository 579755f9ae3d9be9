/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A payload as the supervisor keeps it: small ones in place, larger ones on the heap, blobs as the
 * sealed descriptor they came in.
 */

#include "../shared/payload.h"
#include <stddef.h>
#include <stdint.h>

#define PARCEL_SMALL 96

struct parcel {
    uint64_t size;
    int fd;        /* blob; -1 otherwise */
    uint8_t *heap; /* NULL if small or blob */
    uint8_t small[PARCEL_SMALL];
};

/* clang-format off */
#define PARCEL_NULL {.fd = -1}
/* clang-format on */

/* Copies. 0 or -ENOMEM; the parcel is empty then. The parcel must be null or have been
 * deinitialised. */
int parcel_set(struct parcel *parcel, const void *data, size_t size);

/* Takes a checked blob's descriptor over. */
void parcel_set_blob(struct parcel *parcel, int fd, uint64_t size);

/* Moves; `from` is empty afterwards. */
void parcel_move(struct parcel *to, struct parcel *from);

void parcel_deinit(struct parcel *parcel);

/* The bytes in place; NULL for a blob. */
const void *parcel_data(const struct parcel *parcel);
