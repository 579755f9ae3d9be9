/* SPDX-License-Identifier: MIT */

/* gearmand, the binary protocol (PROTOCOL of its sources): foreground jobs of one function. */

#include "tests/bench/load/load.h"
#include "tests/bench/load/stream.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum packet {
    CAN_DO = 1,
    PRE_SLEEP = 4,
    NOOP = 6,
    SUBMIT_JOB = 7,
    JOB_CREATED = 8,
    GRAB_JOB = 9,
    NO_JOB = 10,
    JOB_ASSIGN = 11,
    WORK_COMPLETE = 13,
};

static const char function[] = "echo";

struct packet_header {
    char magic[4];
    uint32_t type, size;
};

/* Head, then tail: a packet's last argument is the payload. */
static int put(struct stream *stream, enum packet type, const void *head, size_t head_size,
               const void *tail, size_t tail_size)
{
    struct packet_header header = {.type = htonl(type),
                                   .size = htonl((uint32_t)(head_size + tail_size))};

    memcpy(header.magic, "\0REQ", 4);
    int r = stream_put(stream, &header, sizeof(header));
    if (r == 0 && head_size > 0)
        r = stream_put(stream, head, head_size);
    if (r == 0 && tail_size > 0)
        r = stream_put(stream, tail, tail_size);
    return r;
}

static int get(struct stream *stream, enum packet *ret_type, char **ret_body, size_t *ret_size)
{
    struct packet_header header;
    char *bytes;
    int r = stream_bytes(stream, sizeof(header), &bytes);

    if (r < 0)
        return r;
    memcpy(&header, bytes, sizeof(header));
    if (memcmp(header.magic, "\0RES", 4) != 0)
        return -EPROTO;
    *ret_type = (enum packet)ntohl(header.type);
    *ret_size = ntohl(header.size);
    return stream_bytes(stream, *ret_size, ret_body);
}

static int open_submitter(const char *port, unsigned window, void **ret)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return -ENOMEM;
    *ret = stream;
    return stream_open(stream, port);
}

static int submit(void *stream, const void *data, size_t size)
{
    char head[sizeof(function) + 1]; /* the function and an empty unique id, NUL after each */

    memcpy(head, function, sizeof(function));
    head[sizeof(function)] = '\0';
    return put(stream, SUBMIT_JOB, head, sizeof(head), data, size);
}

static int flush(void *stream)
{
    return stream_flush(stream);
}

static int next(void *stream, int wait, void *data, size_t size)
{
    enum packet type;
    char *body;
    size_t body_size, handle_size;
    int r;

    do {
        r = stream_ready(stream);
        if (r == 0 && !wait)
            return -EAGAIN;
        if (r == 0)
            r = stream_flush(stream);
        if (r >= 0)
            r = get(stream, &type, &body, &body_size);
        if (r < 0)
            return r;
    } while (type == JOB_CREATED);
    handle_size = strnlen(body, body_size) + 1;
    if (type != WORK_COMPLETE || handle_size + size != body_size)
        return -EPROTO;
    memcpy(data, body + handle_size, size);
    return 0;
}

static int grab(struct stream *stream, unsigned n)
{
    int r = 0;

    while (r == 0 && n-- > 0)
        r = put(stream, GRAB_JOB, NULL, 0, NULL, 0);
    return r;
}

/* handle NUL function NUL data -> handle NUL data */
static int answer(struct stream *stream, const char *body, size_t size, size_t result_max)
{
    size_t handle_size = strnlen(body, size) + 1;
    size_t skipped = handle_size + sizeof(function);

    if (size < skipped)
        return -EPROTO;
    size -= skipped;
    return put(stream, WORK_COMPLETE, body, handle_size, body + skipped,
               size < result_max ? size : result_max);
}

struct worker {
    struct stream stream;
    unsigned depth, n_grabs; /* jobs asked for, and not refused yet */
    size_t result_max;
};

static int handle(struct worker *worker)
{
    struct stream *stream = &worker->stream;
    enum packet type;
    char *body;
    size_t size;
    int r = get(stream, &type, &body, &size);

    if (r < 0)
        return r;
    if (type == JOB_ASSIGN) {
        r = answer(stream, body, size, worker->result_max);
        return r == 0 ? grab(stream, 1) : r;
    }
    if (type == NO_JOB) {
        if (--worker->n_grabs > 0)
            return 0;
        return put(stream, PRE_SLEEP, NULL, 0, NULL, 0);
    }
    if (type != NOOP || worker->n_grabs > 0)
        return type == NOOP ? 0 : -EPROTO;
    worker->n_grabs = worker->depth;
    return grab(stream, worker->depth);
}

static int work(const char *port, unsigned depth, size_t result_max)
{
    struct worker worker = {.depth = depth, .n_grabs = depth, .result_max = result_max};
    struct stream *stream = &worker.stream;
    int r = stream_open(stream, port);

    if (r == 0)
        r = put(stream, CAN_DO, function, sizeof(function) - 1, NULL, 0);
    if (r == 0)
        r = grab(stream, depth);
    if (r == 0)
        r = stream_flush(stream);
    if (r == 0)
        load_ready();
    while (r >= 0) {
        r = stream_ready(stream);
        if (r == 0)
            r = stream_flush(stream);
        if (r >= 0)
            r = handle(&worker);
    }
    return r;
}

int main(int argc, char **argv)
{
    static const struct load_system system = {"gearmand", open_submitter, submit,
                                              flush,      next,           work};

    return load_main(argc, argv, &system);
}
