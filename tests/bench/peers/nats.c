/* SPDX-License-Identifier: MIT */

/*
 * NATS request and reply: workers subscribe as a queue group, the reply's subject is the
 * submitter's. Messages are pushed to a worker without waiting for anything: DEPTH means nothing
 * here.
 *
 * With the address jetstream:PORT the jobs are messages of a stream in files, and the server
 * answers each that is written. Workers acknowledge them, which removes them; results are messages
 * that are not written.
 */

#include "tests/bench/load/load.h"
#include "tests/bench/load/stream.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUBJECT_SIZE 128

/* Subscriptions. */
enum {
    RESULTS = 1,
    ANSWERS = 2,
    JOBS = 1
};

struct nats {
    struct stream stream;
    char reply_to[SUBJECT_SIZE];
};

/* Whether the address is one of JetStream; `*port` points to the port. */
static bool take_jetstream(const char **port)
{
    static const char prefix[] = "jetstream:";
    const bool found = strncmp(*port, prefix, sizeof(prefix) - 1) == 0;

    *port += found ? sizeof(prefix) - 1 : 0;
    return found;
}

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
    bool jetstream = take_jetstream(&port);

    if (!self)
        return -ENOMEM;
    *ret = self;
    snprintf(self->reply_to, sizeof(self->reply_to), "%s.%d", jetstream ? "answers" : "results",
             getpid());
    int r = open_connection(&self->stream, port);
    if (r == 0)
        r = stream_printf(&self->stream, "SUB %s %d\r\n", self->reply_to,
                          jetstream ? ANSWERS : RESULTS);
    if (r == 0 && jetstream)
        r = stream_printf(&self->stream, "SUB results %d\r\n", RESULTS);
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

/* The next message; `reply_to` gets the subject for the reply, "" if there is none. Returns the
 * subscription or -errno. */
static int message(struct stream *stream, char reply_to[static SUBJECT_SIZE], char **ret_data,
                   size_t *ret_size)
{
    char *line;
    int subscription, r, n;

    while ((r = stream_line(stream, &line)) == 0 && strcmp(line, "PING") == 0) {
        r = stream_put(stream, "PONG\r\n", 6);
        if (r == 0)
            r = stream_flush(stream);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    n = sscanf(line, "MSG %*s %d %127s %zu", &subscription, reply_to, ret_size);
    if (n == 2)
        *ret_size = strtoul(reply_to, NULL, 10);
    else if (n != 3)
        return -EPROTO;
    r = stream_bytes(stream, *ret_size + 2, ret_data);
    return r == 0 ? subscription : r;
}

static int next(void *userdata, int wait, void *data, size_t size)
{
    struct nats *self = userdata;
    char reply_to[SUBJECT_SIZE], *result;
    size_t result_size;
    int r;

    do {
        r = stream_ready(&self->stream);
        if (r == 0 && !wait)
            return -EAGAIN;
        if (r == 0)
            r = stream_flush(&self->stream);
        if (r >= 0)
            r = message(&self->stream, reply_to, &result, &result_size);
        if (r == ANSWERS && strncmp(result, "{\"stream\"", 9) != 0)
            return -EPROTO;
    } while (r == ANSWERS);
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

/* Sends a request to JetStream, which may have been done before. */
static int request(struct stream *stream, const char *subject, const char *text)
{
    char reply_to[SUBJECT_SIZE], *answer;
    size_t size;
    int r = stream_printf(stream, "PUB %s requests.%d %zu\r\n%s\r\n", subject, getpid(),
                          strlen(text), text);

    if (r == 0)
        r = stream_flush(stream);
    if (r == 0)
        r = message(stream, reply_to, &answer, &size);
    if (r >= 0 && memmem(answer, size, "\"error\"", 7)) {
        fprintf(stderr, "nats: %.*s\n", (int)size, answer);
        return -EPROTO;
    }
    return r < 0 ? r : 0;
}

/* A stream of jobs, each of which goes to one worker. */
static int make_stream(struct stream *stream)
{
    int r = stream_printf(stream, "SUB requests.%d %d\r\n", getpid(), ANSWERS);

    if (r == 0)
        r = request(stream, "$JS.API.STREAM.CREATE.JOBS",
                    "{\"name\":\"JOBS\",\"subjects\":[\"jobs\"],\"storage\":\"file\","
                    "\"retention\":\"workqueue\",\"num_replicas\":1}");
    if (r == 0)
        r = request(stream, "$JS.API.CONSUMER.DURABLE.CREATE.JOBS.workers",
                    "{\"stream_name\":\"JOBS\",\"config\":{\"durable_name\":\"workers\","
                    "\"deliver_subject\":\"work\",\"deliver_group\":\"workers\","
                    "\"ack_policy\":\"explicit\",\"max_ack_pending\":65536}}");
    return r;
}

/* Of a stream, the job is removed first: its reply subject is that of the acknowledgement. */
static int give_result(struct stream *stream, bool jetstream, const char *reply_to,
                       const void *data, size_t size)
{
    int r = jetstream ? publish(stream, reply_to, "+ACK", 4) : 0;

    return r == 0 ? publish(stream, jetstream ? "results" : reply_to, data, size) : r;
}

static int work(const char *port, unsigned depth, size_t result_max)
{
    bool jetstream = take_jetstream(&port);
    struct stream stream;
    unsigned n_kept = 0;
    int r = open_connection(&stream, port);

    if (r == 0 && jetstream)
        r = make_stream(&stream);
    if (r == 0)
        r = stream_printf(&stream, "SUB %s workers %d\r\n", jetstream ? "work" : "jobs", JOBS);
    if (r == 0)
        r = settle(&stream);
    if (r == 0)
        load_ready();
    while (r >= 0) {
        char reply_to[SUBJECT_SIZE], *data;
        size_t size;

        r = n_kept >= depth ? 0 : stream_ready(&stream);
        if (r == 0) {
            r = stream_flush(&stream);
            n_kept = 0;
        }
        if (r >= 0)
            r = message(&stream, reply_to, &data, &size);
        if (r >= 0)
            r = give_result(&stream, jetstream, reply_to, data,
                            size < result_max ? size : result_max);
        n_kept++;
    }
    return r;
}

int main(int argc, char **argv)
{
    static const struct load_system system = {"nats", open_submitter, submit, flush, next, work};

    return load_main(argc, argv, &system);
}
