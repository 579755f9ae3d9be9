/* SPDX-License-Identifier: MIT */
#include "worker/base/carrier.h"

#include "shared/base/cleanup.h"
#include <poll.h>
#include <sys/epoll.h>
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

/* Forbids all changes. Unmaps the memory, even if sealing fails. Returns 0 or -errno. */
static int blob_seal(struct blob *blob)
{
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

/* ---- the carrier ---- */

/* poll() may miss that the socket accepts descriptors again: bounds the wait for that. */
#define FULL_SLICE_MS 100

int carrier_open(struct carrier *ret, const struct carrier_class *class,
                 const struct channel_fds *fds, int control)
{
    int r;

    *ret =
        (struct carrier){.class = class, .channel = CHANNEL_NULL, .poll_fd = -1, .made = BLOB_NULL};
    r = channel_open(&ret->channel, fds);
    if (r < 0)
        return r;
    channel_close_fds(&ret->channel);
    ret->control = control;
    ret->inline_max = ret->channel.theirs.header->inline_max;
    ret->position = ret->channel.out.tail;
    return 0;
}

void carrier_deinit(struct carrier *carrier)
{
    blob_deinit(&carrier->made);
    channel_deinit(&carrier->channel);
    close_fd(carrier->poll_fd);
    close_fd(carrier->control);
}

void carrier_flush(struct carrier *carrier)
{
    channel_publish(&carrier->channel);
    carrier->unpublished = 0;
}

/* Skips descriptors before that of the inbox, which were sent for records never published. */
static int receive_inbox(struct carrier *carrier, int *ret_fd)
{
    uint64_t serial;

    for (;;) {
        int r = payload_receive_any(carrier->control, &serial, payload_drop_fd, ret_fd);

        if (r < 0 || serial == PAYLOAD_SERIAL_INBOX)
            return r;
        payload_drop_fd(*ret_fd);
    }
}

static int follow(struct carrier *carrier)
{
    const struct channel *channel = &carrier->channel;
    _cleanup_close_ int fd = -1;
    int r = receive_inbox(carrier, &fd);

    if (r == 0)
        r = channel_follow(&carrier->channel, fd);
    if (r < 0)
        return r;
    carrier->class->restarted(carrier, carrier->position -
                                           (channel->out.tail - channel->theirs.header->resumed));
    return 0;
}

int carrier_next(struct carrier *carrier, struct ring_record *ret)
{
    struct ring_consumer *in = &carrier->channel.in;

    for (;;) {
        int r = ring_next(in, ret);

        if (r != RING_E_EMPTY || !channel_is_moved(&carrier->channel))
            return r;
        /* The former supervisor may have published more before it ended. */
        r = ring_next(in, ret);
        if (r != RING_E_EMPTY)
            return r;
        r = follow(carrier);
        if (r < 0)
            return r;
    }
}

int carrier_interrupted(struct carrier *carrier)
{
    return carrier->on_signal ? carrier->on_signal(carrier->signal_userdata) : 0;
}

int carrier_drain(struct carrier *carrier)
{
    int r;

    do
        r = carrier->class->pump(carrier, 0);
    while (r > 0);
    return r == -EINTR ? 0 : r;
}

static int reserve(struct carrier *carrier, unsigned flags, uint32_t size, void **ret)
{
    for (;;) {
        int r = carrier->over ? -EPIPE : ring_reserve(&carrier->channel.out, size, ret);

        if (r != RING_E_FULL)
            return r;
        carrier_flush(carrier);
        r = flags & CARRIER_TRY ? -EAGAIN : carrier->class->wait_room(carrier, size);
        if (r < 0)
            return r;
    }
}

/* Waits even with CARRIER_TRY: a sealed blob cannot be given back to the program. */
static int send_blob(struct carrier *carrier, const struct blob *blob, struct payload_wire *ret)
{
    int r;

    while ((r = blob_send(blob, carrier->control, carrier->blobs_sent + 1)) == -EAGAIN) {
        /* The supervisor may take descriptors only after this side has taken its records. */
        r = carrier_drain(carrier);
        if (r < 0)
            return r;
        (void)blob_sendable(carrier->control, FULL_SLICE_MS);
        r = carrier_interrupted(carrier);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    *ret = (struct payload_wire){
        .form = PAYLOAD_BLOB, .size = blob->size, .serial = ++carrier->blobs_sent};
    return 0;
}

/* Seals and sends the payload: `made`, or a copy of the data. */
static int place_blob(struct carrier *carrier, bool made, struct payload_wire *payload)
{
    _cleanup_(blob_deinit)
    struct blob blob = BLOB_NULL;
    int r;

    if (made) {
        blob = carrier->made;
        carrier->made = (struct blob)BLOB_NULL;
        r = blob_seal(&blob);
    } else
        r = blob_copy(&blob, payload->data, payload->size);
    return r < 0 ? r : send_blob(carrier, &blob, payload);
}

int carrier_begin(struct carrier *carrier, unsigned flags, struct payload_wire *payload,
                  uint32_t *room, void **ret)
{
    const bool made =
        (flags & CARRIER_MADE) && carrier->made.fd >= 0 && payload->data == carrier->made.data;
    const bool blob = payload && (made || payload->size > carrier->inline_max);
    int r;

    if (made && payload->size != carrier->made.size)
        return -EINVAL;
    if (payload && !blob)
        *room += (uint32_t)payload->size;
    r = reserve(carrier, flags, *room, ret);
    if (r < 0 || !blob)
        return r;
    /* The supervisor takes descriptors as it reads the records that name them. */
    carrier_flush(carrier);
    if ((flags & CARRIER_TRY) && !blob_sendable(carrier->control, 0))
        return -EAGAIN;
    return place_blob(carrier, made, payload);
}

int carrier_commit(struct carrier *carrier, unsigned kind, int size)
{
    if (size < 0)
        return size;
    ring_commit(&carrier->channel.out, (uint16_t)kind, (uint32_t)size);
    carrier->position += (uint32_t)(carrier->channel.out.tail - (uint32_t)carrier->position);
    carrier->unpublished++;
    return 0;
}

static int add(int epoll, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events};

    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int carrier_fd(struct carrier *carrier, int socket, uint32_t events)
{
    _cleanup_close_ int fd = -1;
    int r;

    if (carrier->poll_fd >= 0)
        return carrier->poll_fd;
    fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = add(fd, carrier->channel.wait_fd, EPOLLIN);
    if (r == 0)
        r = add(fd, carrier->channel.self_fd, EPOLLIN);
    if (r == 0)
        r = add(fd, socket, events);
    if (r < 0)
        return r;
    /* Readable from the start: only processing shows that nothing has arrived yet. */
    channel_ring_self(&carrier->channel);
    return carrier->poll_fd = TAKE_FD(fd);
}
