/* SPDX-License-Identifier: MIT */
#include "parcel.h"

#include "../shared/cleanup.h"
#include "../shared/fault.h"
#include "closer.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Freeing so many bytes takes about as long as handing the descriptor to another thread. */
#define CLOSED_HERE_MAX ((uint64_t)256 << 10)

int parcel_set(struct parcel *parcel, const void *data, size_t size)
{
    uint8_t *place = parcel->small;

    if (size > sizeof(parcel->small)) {
        place = fault_inject("parcel") < 0 ? NULL : malloc(size);
        if (!place)
            return -ENOMEM;
        parcel->heap = place;
    }
    if (size > 0)
        memcpy(place, data, size);
    parcel->size = size;
    return 0;
}

void parcel_set_blob(struct parcel *parcel, int fd, uint64_t size)
{
    parcel->fd = fd;
    parcel->size = size;
}

void parcel_close_blob(struct parcel *parcel)
{
    if (parcel->size > CLOSED_HERE_MAX)
        closer_close(parcel->fd);
    else
        (void)close_fd(parcel->fd);
    parcel->fd = -1;
}

void parcel_move(struct parcel *to, struct parcel *from)
{
    to->size = from->size;
    to->fd = TAKE_FD(from->fd);
    to->heap = TAKE_PTR(from->heap);
    if (to->fd < 0 && !to->heap)
        memcpy(to->small, from->small, (size_t)from->size);
    from->size = 0;
}
