/* SPDX-License-Identifier: MIT */

/*
 * redis as a queue: a list of jobs and a list of results, LPUSH and BRPOP. A connection that waits
 * in BRPOP does nothing else meanwhile, so each side has two.
 */

#include "tests/bench/load/load.h"
#include "tests/bench/load/stream.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POPS_MAX 64u

struct redis {
    struct stream push, pop;
    const char *to, *from;
    unsigned n_unanswered; /* pushes */
};

static int ask_for(struct redis *self, unsigned n)
{
    int r = 0;

    while (r == 0 && n-- > 0)
        r = stream_printf(&self->pop, "*3\r\n$5\r\nBRPOP\r\n$%zu\r\n%s\r\n$1\r\n0\r\n",
                          strlen(self->from), self->from);
    return r;
}

static int open_both(struct redis *self, const char *port, unsigned n_pops)
{
    int r = stream_open(&self->push, port);

    if (r == 0)
        r = stream_open(&self->pop, port);
    if (r == 0)
        r = ask_for(self, n_pops);
    return r == 0 ? stream_flush(&self->pop) : r;
}

static int open_submitter(const char *port, unsigned window, void **ret)
{
    struct redis *self = calloc(1, sizeof(*self));

    if (!self)
        return -ENOMEM;
    self->to = "jobs";
    self->from = "results";
    *ret = self;
    return open_both(self, port, window < POPS_MAX ? window : POPS_MAX);
}

static int push(struct redis *self, const void *data, size_t size)
{
    int r = stream_printf(&self->push, "*3\r\n$5\r\nLPUSH\r\n$%zu\r\n%s\r\n$%zu\r\n",
                          strlen(self->to), self->to, size);

    if (r == 0)
        r = stream_put(&self->push, data, size);
    if (r == 0)
        r = stream_put(&self->push, "\r\n", 2);
    self->n_unanswered += r == 0;
    return r;
}

static int submit(void *userdata, const void *data, size_t size)
{
    return push(userdata, data, size);
}

static int flush(void *userdata)
{
    struct redis *self = userdata;
    int r = stream_flush(&self->pop);

    return r == 0 ? stream_flush(&self->push) : r;
}

static int take_answers(struct redis *self)
{
    int r = 0;

    while (self->n_unanswered > 0 && (r = stream_ready(&self->push)) > 0) {
        char *line;
        r = stream_line(&self->push, &line);
        if (r < 0)
            return r;
        if (line[0] != ':')
            return -EPROTO;
        self->n_unanswered--;
    }
    return r < 0 ? r : 0;
}

/* An array of the list's name and the value; another one is asked for. */
static int popped(struct redis *self, char **ret_data, size_t *ret_size)
{
    char *line;
    int r = stream_line(&self->pop, &line);

    if (r == 0 && strcmp(line, "*2") != 0)
        return -EPROTO;
    for (int i = 0; r == 0 && i < 2; i++) {
        r = stream_line(&self->pop, &line);
        if (r == 0 && sscanf(line, "$%zu", ret_size) != 1)
            return -EPROTO;
        if (r == 0)
            r = stream_bytes(&self->pop, *ret_size + 2, ret_data);
    }
    return r == 0 ? ask_for(self, 1) : r;
}

static int next(void *userdata, int wait, void *data, size_t size)
{
    struct redis *self = userdata;
    char *result;
    size_t result_size;
    int r = stream_ready(&self->pop);

    if (r == 0 && !wait)
        return -EAGAIN;
    if (r == 0) {
        r = flush(self);
        if (r == 0)
            r = take_answers(self);
    }
    if (r >= 0)
        r = popped(self, &result, &result_size);
    if (r < 0 || result_size != size)
        return r < 0 ? r : -EPROTO;
    memcpy(data, result, size);
    return 0;
}

static int work(const char *port, unsigned depth, size_t result_max)
{
    struct redis self = {.to = "results", .from = "jobs"};
    int r = open_both(&self, port, depth);

    if (r == 0)
        load_ready();
    while (r >= 0) {
        char *data;
        size_t size;

        r = stream_ready(&self.pop);
        if (r == 0)
            r = flush(&self);
        if (r == 0)
            r = take_answers(&self);
        if (r >= 0)
            r = popped(&self, &data, &size);
        if (r >= 0)
            r = push(&self, data, size < result_max ? size : result_max);
    }
    return r;
}

int main(int argc, char **argv)
{
    static const struct load_system system = {"redis", open_submitter, submit, flush, next, work};

    return load_main(argc, argv, &system);
}
