/* SPDX-License-Identifier: MIT */
#include "worker/base/blob.h"

#include "shared/base/cleanup.h"
#include "shared/protocol/payload-wire.h"
#include <poll.h>
#include <sys/mman.h>

/* The pause between tries: poll() does not report when other descriptors in flight have arrived. */
#define IN_FLIGHT_PAUSE_MS 10

int blob_new(struct blob *ret, size_t size)
{
    struct blob blob = BLOB_NULL;
    int r;

    if (size == 0)
        return -EINVAL;
    if (size > PAYLOAD_BLOB_MAX)
        return -EMSGSIZE;
    r = payload_blob_new(size, &blob.fd, &blob.data);
    if (r < 0)
        return r;
    blob.size = size;
    *ret = blob;
    return 0;
}

int blob_seal(struct blob *blob)
{
    /* Unmapped even if sealing fails. */
    blob->sealed = true;
    return payload_blob_seal(blob->fd, blob->data, blob->size);
}

int blob_copy(struct blob *ret, const void *data, size_t size)
{
    struct blob blob = BLOB_NULL;
    int r;

    if (size > PAYLOAD_BLOB_MAX)
        return -EMSGSIZE;
    r = payload_blob_copy(data, size, &blob.fd);
    if (r < 0)
        return r;
    blob.size = size;
    blob.sealed = true;
    *ret = blob;
    return 0;
}

int blob_send(const struct blob *blob, int socket, uint64_t serial)
{
    int r = payload_send_fd(socket, blob->fd, serial);

    switch (r) {
    case -ETOOMANYREFS:
        (void)poll(NULL, 0, IN_FLIGHT_PAUSE_MS);
        return -EAGAIN;
    case -ECONNRESET:
    case -ENOTCONN:
    case -ECONNREFUSED:
        return -EPIPE;
    default:
        return r;
    }
}

bool blob_sendable(int socket, int timeout_ms)
{
    struct pollfd poller = {.fd = socket, .events = POLLOUT};

    return poll(&poller, 1, timeout_ms) > 0;
}

void blob_deinit(struct blob *blob)
{
    if (blob->fd >= 0 && !blob->sealed)
        (void)munmap(blob->data, blob->size);
    close_fd(blob->fd);
    *blob = (struct blob)BLOB_NULL;
}
