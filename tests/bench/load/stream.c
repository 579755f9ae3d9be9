/* SPDX-License-Identifier: MIT */
#include "tests/bench/load/stream.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER ((size_t)1 << 18)

int stream_open(struct stream *stream, const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1;

    *stream = (struct stream){
        .in = malloc(BUFFER), .out = malloc(BUFFER), .in_max = BUFFER, .out_max = BUFFER};
    if (!stream->in || !stream->out)
        return -ENOMEM;
    stream->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (stream->fd < 0 || setsockopt(stream->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) < 0 ||
        connect(stream->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return 0;
}

int stream_flush(struct stream *stream)
{
    for (size_t sent = 0; sent < stream->out_size;) {
        ssize_t n = send(stream->fd, stream->out + sent, stream->out_size - sent, MSG_NOSIGNAL);
        if (n < 0)
            return -errno;
        sent += (size_t)n;
    }
    stream->out_size = 0;
    return 0;
}

static int grow(char **buffer, size_t *max, size_t need)
{
    size_t size = *max;

    while (size < need)
        size *= 2;
    if (size == *max)
        return 0;
    char *bigger = realloc(*buffer, size);
    if (!bigger)
        return -ENOMEM;
    *buffer = bigger;
    *max = size;
    return 0;
}

int stream_put(struct stream *stream, const void *data, size_t size)
{
    int r = 0;

    if (stream->out_size + size > stream->out_max)
        r = stream_flush(stream);
    if (r == 0)
        r = grow(&stream->out, &stream->out_max, size);
    if (r < 0)
        return r;
    memcpy(stream->out + stream->out_size, data, size);
    stream->out_size += size;
    return 0;
}

int stream_printf(struct stream *stream, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    int size = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (size < 0 || (size_t)size >= sizeof(text))
        return -EMSGSIZE;
    return stream_put(stream, text, (size_t)size);
}

/* Room behind what is there already, then whatever the socket has. */
static int receive(struct stream *stream, size_t need, int flags)
{
    if (stream->in_begin > 0 && stream->in_begin + need > stream->in_max) {
        memmove(stream->in, stream->in + stream->in_begin, stream->in_end - stream->in_begin);
        stream->in_end -= stream->in_begin;
        stream->in_begin = 0;
    }
    if (grow(&stream->in, &stream->in_max, need) < 0)
        return -ENOMEM;
    ssize_t n =
        recv(stream->fd, stream->in + stream->in_end, stream->in_max - stream->in_end, flags);
    if (n <= 0)
        return n < 0 ? -errno : -EPIPE;
    stream->in_end += (size_t)n;
    return 0;
}

int stream_ready(struct stream *stream)
{
    if (stream->in_begin < stream->in_end)
        return 1;
    stream->in_begin = stream->in_end = 0;
    int r = receive(stream, 1, MSG_DONTWAIT);
    return r == -EAGAIN ? 0 : r < 0 ? r : 1;
}

int stream_bytes(struct stream *stream, size_t size, char **ret)
{
    while (stream->in_end - stream->in_begin < size) {
        int r = receive(stream, size, 0);
        if (r < 0)
            return r;
    }
    *ret = stream->in + stream->in_begin;
    stream->in_begin += size;
    return 0;
}

int stream_line(struct stream *stream, char **ret)
{
    size_t seen = 0;

    for (;;) {
        char *begin = stream->in + stream->in_begin;
        size_t size = stream->in_end - stream->in_begin;
        char *end = size > seen ? memchr(begin + seen, '\n', size - seen) : NULL;
        int r;

        if (end) {
            stream->in_begin += (size_t)(end - begin) + 1;
            *(end > begin && end[-1] == '\r' ? end - 1 : end) = '\0';
            *ret = begin;
            return 0;
        }
        seen = size;
        r = receive(stream, size + 1, 0);
        if (r < 0)
            return r;
    }
}
