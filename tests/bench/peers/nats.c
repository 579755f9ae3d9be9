/* SPDX-License-Identifier: MIT */

/*
 * NATS request and reply: workers subscribe as a queue group, the reply's subject is the
 * submitter's. Messages are pushed to a worker without waiting for anything: DEPTH means nothing
 * here.
 */

#include "tests/bench/load/load.h"
#include "tests/bench/load/stream.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct nats {
    struct stream stream;
    char reply_to[32];
};

static int open_connection(struct stream *stream, const char *port)
{
    char *line;
    int r = stream_open(stream, port);

    if (r == 0)
        r = stream_line(stream, &line);
    if (r == 0 && strncmp(line, "INFO ", 5) != 0)
        return -EPROTO;
    return r == 0 ? stream_printf(stream, "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n") : r;
}

/* Until the server has done what was put. */
static int settle(struct stream *stream)
{
    char *line;
    int r = stream_put(stream, "PING\r\n", 6);

    if (r == 0)
        r = stream_flush(stream);
    if (r == 0)
        r = stream_line(stream, &line);
    return r == 0 && strcmp(line, "PONG") != 0 ? -EPROTO : r;
}

static int open_submitter(const char *port, unsigned window, void **ret)
{
    struct nats *self = calloc(1, sizeof(*self));
    int r;

    (void)window;
    if (!self)
        return -ENOMEM;
    *ret = self;
    snprintf(self->reply_to, sizeof(self->reply_to), "results.%d", getpid());
    r = open_connection(&self->stream, port);
    if (r == 0)
        r = stream_printf(&self->stream, "SUB %s 1\r\n", self->reply_to);
    return r == 0 ? settle(&self->stream) : r;
}

static int submit(void *userdata, const void *data, size_t size)
{
    struct nats *self = userdata;
    int r = stream_printf(&self->stream, "PUB jobs %s %zu\r\n", self->reply_to, size);

    if (r == 0)
        r = stream_put(&self->stream, data, size);
    return r == 0 ? stream_put(&self->stream, "\r\n", 2) : r;
}

static int flush(void *userdata)
{
    struct nats *self = userdata;

    return stream_flush(&self->stream);
}

/* The next message; `reply_to` gets the subject for the reply, "" if there is none. */
static int message(struct stream *stream, char reply_to[static 32], char **ret_data,
                   size_t *ret_size)
{
    char *line;
    int r, n;

    while ((r = stream_line(stream, &line)) == 0 && strcmp(line, "PING") == 0) {
        r = stream_put(stream, "PONG\r\n", 6);
        if (r == 0)
            r = stream_flush(stream);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    n = sscanf(line, "MSG %*s %*s %31s %zu", reply_to, ret_size);
    if (n == 1)
        *ret_size = strtoul(reply_to, NULL, 10);
    else if (n != 2)
        return -EPROTO;
    return stream_bytes(stream, *ret_size + 2, ret_data);
}

static int next(void *userdata, int wait, void *data, size_t size)
{
    struct nats *self = userdata;
    char reply_to[32], *result;
    size_t result_size;
    int r = stream_ready(&self->stream);

    if (r == 0 && !wait)
        return -EAGAIN;
    if (r == 0)
        r = stream_flush(&self->stream);
    if (r >= 0)
        r = message(&self->stream, reply_to, &result, &result_size);
    if (r < 0 || result_size != size)
        return r < 0 ? r : -EPROTO;
    memcpy(data, result, size);
    return 0;
}

static int publish(struct stream *stream, const char *subject, const void *data, size_t size)
{
    int r = stream_printf(stream, "PUB %s %zu\r\n", subject, size);

    if (r == 0)
        r = stream_put(stream, data, size);
    return r == 0 ? stream_put(stream, "\r\n", 2) : r;
}

static int work(const char *port, unsigned depth, size_t result_max)
{
    struct stream stream;
    unsigned n_kept = 0;
    int r = open_connection(&stream, port);

    if (r == 0)
        r = stream_printf(&stream, "SUB jobs workers 1\r\n");
    if (r == 0)
        r = settle(&stream);
    if (r == 0)
        load_ready();
    while (r >= 0) {
        char reply_to[32], *data;
        size_t size;

        r = n_kept >= depth ? 0 : stream_ready(&stream);
        if (r == 0) {
            r = stream_flush(&stream);
            n_kept = 0;
        }
        if (r >= 0)
            r = message(&stream, reply_to, &data, &size);
        if (r >= 0)
            r = publish(&stream, reply_to, data, size < result_max ? size : result_max);
        n_kept++;
    }
    return r;
}

int main(int argc, char **argv)
{
    static const struct load_system system = {"nats", open_submitter, submit, flush, next, work};

    return load_main(argc, argv, &system);
}
