/* SPDX-License-Identifier: MIT */
#include "tests/bench/load/pair.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct pair_protocol *protocol;

static int open_both(struct pair *pair, const char *port, unsigned depth)
{
    int r = stream_open(&pair->put, port);

    if (r == 0)
        r = stream_open(&pair->take, port);
    if (r == 0)
        r = protocol->open(pair, depth);
    return r == 0 ? stream_flush(&pair->take) : r;
}

static int open_submitter(const char *port, unsigned window, void **ret)
{
    struct pair *pair = calloc(1, sizeof(*pair));

    if (!pair)
        return -ENOMEM;
    pair->to = "jobs";
    pair->from = "results";
    *ret = pair;
    return open_both(pair, port, window);
}

static int submit(void *userdata, const void *data, size_t size)
{
    struct pair *pair = userdata;
    int r = protocol->put_head(pair, size);

    if (r == 0)
        r = stream_put(&pair->put, data, size);
    if (r == 0)
        r = stream_put(&pair->put, "\r\n", 2);
    pair->n_unanswered += r == 0;
    return r;
}

static int flush(void *userdata)
{
    struct pair *pair = userdata;
    int r = stream_flush(&pair->take);

    return r == 0 ? stream_flush(&pair->put) : r;
}

/* Takes what has come of the answers to puts, or they would fill the socket some day. */
static int take_answers(struct pair *pair)
{
    int r = 0;

    while (pair->n_unanswered > 0 && (r = stream_ready(&pair->put)) > 0) {
        char *line;
        r = stream_line(&pair->put, &line);
        if (r < 0)
            return r;
        if (strncmp(line, protocol->taken, strlen(protocol->taken)) != 0)
            return -EPROTO;
        pair->n_unanswered--;
    }
    return r < 0 ? r : 0;
}

static int take(struct pair *pair, int wait, char **ret_data, size_t *ret_size)
{
    int r = protocol->ready ? protocol->ready(&pair->take) : stream_ready(&pair->take);

    if (r == 0 && !wait)
        return -EAGAIN;
    if (r == 0) {
        r = flush(pair);
        if (r == 0)
            r = take_answers(pair);
    }
    return r < 0 ? r : protocol->take(pair, ret_data, ret_size);
}

static int next(void *userdata, int wait, void *data, size_t size)
{
    char *result;
    size_t result_size;
    int r = take(userdata, wait, &result, &result_size);

    if (r < 0 || result_size != size)
        return r < 0 ? r : -EPROTO;
    memcpy(data, result, size);
    return 0;
}

static int work(const char *port, unsigned depth, size_t result_max)
{
    struct pair pair = {.to = "results", .from = "jobs"};
    int r = open_both(&pair, port, depth);

    if (r == 0)
        load_ready();
    while (r >= 0) {
        char *data;
        size_t size;

        r = take(&pair, 1, &data, &size);
        if (r >= 0)
            r = submit(&pair, data, size < result_max ? size : result_max);
    }
    return r;
}

int pair_main(int argc, char **argv, const struct pair_protocol *spoken)
{
    const struct load_system system = {spoken->name, open_submitter, submit, flush, next, work};

    protocol = spoken;
    return load_main(argc, argv, &system);
}
