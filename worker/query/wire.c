/* SPDX-License-Identifier: MIT */
#include "worker/query/wire.h"

#include "shared/base/cleanup.h"
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define PIECE 65536u
/* The supervisor's answers are at most half as long. */
#define MESSAGE_MAX ((size_t)8 << 20)

void wire_deinit(struct wire *wire)
{
    close_fd(wire->socket);
    free(wire->buffer);
}

static int reserve(struct wire *wire)
{
    size_t capacity = wire->capacity ? 2 * wire->capacity : PIECE;
    char *buffer;

    if (wire->size < wire->capacity)
        return 0;
    if (capacity > MESSAGE_MAX)
        return -EPROTO;
    buffer = realloc(wire->buffer, capacity);
    if (!buffer)
        return -ENOMEM;
    wire->buffer = buffer;
    wire->capacity = capacity;
    return 0;
}

static int receive_piece(struct wire *wire, usec_t timeout)
{
    struct pollfd poller = {.fd = wire->socket, .events = POLLIN};
    struct timespec limit = usec_to_timespec(timeout);
    ssize_t n;
    int r = reserve(wire);

    if (r < 0)
        return r;
    r = ppoll(&poller, 1, timeout == USEC_INFINITY ? NULL : &limit, NULL);
    if (r <= 0)
        return r < 0 ? -errno : -EAGAIN;
    n = recv(wire->socket, wire->buffer + wire->size, wire->capacity - wire->size, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -EPIPE;
    wire->size += (size_t)n;
    return 0;
}

int wire_receive(struct wire *wire, usec_t timeout)
{
    const usec_t deadline = clock_deadline(timeout);
    size_t searched = 0;

    for (;;) {
        const char *end = wire->size > searched
                              ? memchr(wire->buffer + searched, '\0', wire->size - searched)
                              : NULL;
        int r;

        if (end) {
            wire->message = (size_t)(end - wire->buffer) + 1;
            return 0;
        }
        searched = wire->size;
        r = receive_piece(wire, clock_left(deadline));
        if (r < 0)
            return r;
    }
}

void wire_drop(struct wire *wire)
{
    memmove(wire->buffer, wire->buffer + wire->message, wire->size - wire->message);
    wire->size -= wire->message;
    wire->message = 0;
}
