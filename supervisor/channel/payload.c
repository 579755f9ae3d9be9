/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/payload.h"

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "supervisor/loop/closer.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Copying this many bytes takes some hundred microseconds. */
#define COPIED_MAX ((size_t)1 << 20)

/* Returns room for `size` bytes; NULL when out of memory. */
static uint8_t *make_room(struct payload *payload, size_t size)
{
    if (size <= sizeof(payload->small))
        return payload->small;
    payload->heap = fault_inject("payload") < 0 ? NULL : malloc(size);
    return payload->heap;
}

int payload_set(struct payload *payload, const void *data, size_t size)
{
    uint8_t *place = make_room(payload, size);

    if (!place)
        return -ENOMEM;
    if (size > 0)
        memcpy(place, data, size);
    payload->size = size;
    return 0;
}

int payload_set_lasting(struct payload *payload, const void *data, size_t size)
{
    int fd;

    if (size <= COPIED_MAX || payload_blob_copy(data, size, &fd) < 0)
        return payload_set(payload, data, size);
    payload_set_blob(payload, fd, size);
    return 0;
}

int payload_read(struct payload *payload, int fd, size_t size)
{
    uint8_t *place = make_room(payload, size);

    if (!place)
        return -ENOMEM;
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(fd, place + done, size - done, (off_t)done);

        if (n <= 0) {
            if (place != payload->small)
                free(place);
            return n < 0 ? -errno : -EPROTO;
        }
        done += (size_t)n;
    }
    payload->size = size;
    return 0;
}

void payload_set_blob(struct payload *payload, int fd, uint64_t size)
{
    payload->fd = fd;
    payload->blob = NULL;
    payload->size = size;
}

void payload_set_shared(struct payload *payload, struct held_blob *blob)
{
    payload->fd = blob->fd;
    payload->blob = blob;
    payload->size = blob->size;
}

int payload_copy(struct payload *to, const struct payload *from)
{
    int fd;

    if (from->fd < 0)
        return payload_set(to, payload_data(from), (size_t)from->size);
    if (from->blob) {
        from->blob->references++;
        payload_set_shared(to, from->blob);
        return 0;
    }
    fd = fcntl(from->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    payload_set_blob(to, fd, from->size);
    return 0;
}

void payload_drop_blob(struct payload *payload)
{
    if (payload->blob)
        (void)held_blob_unref(payload->blob);
    else if (payload->size > COPIED_MAX)
        closer_close(payload->fd);
    else
        (void)close_fd(payload->fd);
    payload->fd = -1;
}

void payload_move(struct payload *to, struct payload *from)
{
    to->size = from->size;
    to->fd = TAKE_FD(from->fd);
    if (to->fd >= 0)
        to->blob = from->blob;
    else if (payload_on_heap(to))
        to->heap = from->heap;
    else
        memcpy(to->small, from->small, (size_t)from->size);
    from->size = 0;
}
