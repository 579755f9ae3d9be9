/* SPDX-License-Identifier: MIT */

/*
 * beanstalkd (protocol.txt of its documentation): jobs in one tube, results as jobs of another.
 * Whoever reserves cannot do anything else on that connection meanwhile, so each side has two, and
 * one reservation at a time, since a job is deleted on the connection that reserved it: DEPTH means
 * nothing here.
 */

#include "tests/bench/load/load.h"
#include "tests/bench/load/stream.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct beanstalkd {
    struct stream put, reserve;
    unsigned n_unanswered; /* puts */
};

/* Both connections; a reservation is under way. */
static int open_both(struct beanstalkd *self, const char *port, const char *to, const char *from)
{
    char *line;
    int r = stream_open(&self->put, port);

    if (r == 0)
        r = stream_open(&self->reserve, port);
    if (r == 0)
        r = stream_printf(&self->put, "use %s\r\n", to);
    if (r == 0)
        r = stream_flush(&self->put);
    if (r == 0)
        r = stream_line(&self->put, &line);
    if (r == 0)
        r = stream_printf(&self->reserve, "watch %s\r\nignore default\r\nreserve\r\n", from);
    return r == 0 ? stream_flush(&self->reserve) : r;
}

static int open_submitter(const char *port, unsigned window, void **ret)
{
    struct beanstalkd *self = calloc(1, sizeof(*self));

    if (!self)
        return -ENOMEM;
    *ret = self;
    return open_both(self, port, "jobs", "results");
}

static int put(struct beanstalkd *self, const void *data, size_t size)
{
    int r = stream_printf(&self->put, "put 0 0 3600 %zu\r\n", size);

    if (r == 0)
        r = stream_put(&self->put, data, size);
    if (r == 0)
        r = stream_put(&self->put, "\r\n", 2);
    self->n_unanswered += r == 0;
    return r;
}

static int submit(void *userdata, const void *data, size_t size)
{
    return put(userdata, data, size);
}

static int flush(void *userdata)
{
    struct beanstalkd *self = userdata;
    int r = stream_flush(&self->reserve);

    return r == 0 ? stream_flush(&self->put) : r;
}

/* Takes what has come of the answers to puts, or they would fill the socket some day. */
static int take_answers(struct beanstalkd *self)
{
    int r = 0;

    while (self->n_unanswered > 0 && (r = stream_ready(&self->put)) > 0) {
        char *line;
        r = stream_line(&self->put, &line);
        if (r < 0)
            return r;
        if (strncmp(line, "INSERTED ", 9) != 0)
            return -EPROTO;
        self->n_unanswered--;
    }
    return r < 0 ? r : 0;
}

/* The next reserved job, which is deleted and another one asked for. */
static int reserved(struct beanstalkd *self, char **ret_data, size_t *ret_size)
{
    unsigned long long id;
    char *line;
    int r;

    do {
        r = stream_line(&self->reserve, &line);
        if (r < 0)
            return r;
    } while (strncmp(line, "DELETED", 7) == 0 || strncmp(line, "WATCHING", 8) == 0);
    if (sscanf(line, "RESERVED %llu %zu", &id, ret_size) != 2)
        return -EPROTO;
    r = stream_bytes(&self->reserve, *ret_size + 2, ret_data);
    return r == 0 ? stream_printf(&self->reserve, "delete %llu\r\nreserve\r\n", id) : r;
}

/* Whether a job, and not only the answer to a deletion, is there. */
static int job_ready(struct stream *stream)
{
    int r;

    while ((r = stream_ready(stream)) > 0 && stream->in[stream->in_begin] != 'R') {
        char *line;
        r = stream_line(stream, &line);
        if (r < 0)
            return r;
    }
    return r;
}

static int next(void *userdata, int wait, void *data, size_t size)
{
    struct beanstalkd *self = userdata;
    char *result;
    size_t result_size;
    int r = job_ready(&self->reserve);

    if (r == 0 && !wait)
        return -EAGAIN;
    if (r == 0) {
        r = flush(self);
        if (r == 0)
            r = take_answers(self);
    }
    if (r >= 0)
        r = reserved(self, &result, &result_size);
    if (r < 0 || result_size != size)
        return r < 0 ? r : -EPROTO;
    memcpy(data, result, size);
    return 0;
}

static int work(const char *port, unsigned depth, size_t result_max)
{
    struct beanstalkd self = {0};
    int r = open_both(&self, port, "results", "jobs");

    if (r == 0)
        load_ready();
    while (r >= 0) {
        char *data;
        size_t size;

        r = job_ready(&self.reserve);
        if (r == 0)
            r = flush(&self);
        if (r == 0)
            r = take_answers(&self);
        if (r >= 0)
            r = reserved(&self, &data, &size);
        if (r >= 0)
            r = put(&self, data, size < result_max ? size : result_max);
    }
    return r;
}

int main(int argc, char **argv)
{
    static const struct load_system system = {"beanstalkd", open_submitter, submit,
                                              flush,        next,           work};

    return load_main(argc, argv, &system);
}
