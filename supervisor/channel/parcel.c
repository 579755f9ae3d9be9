/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/parcel.h"

#include "shared/cleanup.h"
#include "shared/fault.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Where so many bytes go; NULL when out of memory. */
static uint8_t *make_room(struct parcel *parcel, size_t size)
{
    if (size <= sizeof(parcel->small))
        return parcel->small;
    parcel->heap = fault_inject("parcel") < 0 ? NULL : malloc(size);
    return parcel->heap;
}

int parcel_set(struct parcel *parcel, const void *data, size_t size)
{
    uint8_t *place = make_room(parcel, size);

    if (!place)
        return -ENOMEM;
    if (size > 0)
        memcpy(place, data, size);
    parcel->size = size;
    return 0;
}

int parcel_read(struct parcel *parcel, int fd, size_t size)
{
    uint8_t *place = make_room(parcel, size);

    if (!place)
        return -ENOMEM;
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(fd, place + done, size - done, (off_t)done);

        if (n <= 0) {
            free(TAKE_PTR(parcel->heap));
            return n < 0 ? -errno : -EPROTO;
        }
        done += (size_t)n;
    }
    parcel->size = size;
    return 0;
}

void parcel_set_blob(struct parcel *parcel, int fd, uint64_t size)
{
    parcel->fd = fd;
    parcel->size = size;
}

void parcel_set_shared(struct parcel *parcel, struct held_blob *blob)
{
    parcel->fd = blob->fd;
    parcel->blob = blob;
    parcel->size = blob->size;
}

int parcel_copy(struct parcel *to, const struct parcel *from)
{
    int fd;

    if (from->fd < 0)
        return parcel_set(to, parcel_data(from), (size_t)from->size);
    if (from->blob) {
        parcel_set_shared(to, held_blob_ref(from->blob));
        return 0;
    }
    fd = fcntl(from->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    parcel_set_blob(to, fd, from->size);
    return 0;
}

void parcel_drop_blob(struct parcel *parcel)
{
    if (parcel->blob)
        parcel->blob = held_blob_unref(parcel->blob);
    else
        (void)close_fd(parcel->fd);
    parcel->fd = -1;
}

void parcel_move(struct parcel *to, struct parcel *from)
{
    to->size = from->size;
    to->fd = TAKE_FD(from->fd);
    to->blob = TAKE_PTR(from->blob);
    to->heap = TAKE_PTR(from->heap);
    if (to->fd < 0 && !to->heap)
        memcpy(to->small, from->small, (size_t)from->size);
    from->size = 0;
}
