/* SPDX-License-Identifier: MIT */

/*
 * beanstalkd (protocol.txt of its documentation): jobs in one tube, results as jobs of another. One
 * reservation at a time, since a job is deleted on the connection that reserved it: DEPTH means
 * nothing here.
 */

#include "tests/bench/load/pair.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A reservation is under way. */
static int open_tubes(struct pair *pair, unsigned depth)
{
    char *line;
    int r = stream_printf(&pair->put, "use %s\r\n", pair->to);

    if (r == 0)
        r = stream_flush(&pair->put);
    if (r == 0)
        r = stream_line(&pair->put, &line);
    if (r == 0)
        r = stream_printf(&pair->take, "watch %s\r\nignore default\r\nreserve\r\n", pair->from);
    return r;
}

static int put_head(struct pair *pair, size_t size)
{
    return stream_printf(&pair->put, "put 0 0 3600 %zu\r\n", size);
}

/* The next reserved job, which is deleted and another one asked for. */
static int reserved(struct pair *pair, char **ret_data, size_t *ret_size)
{
    unsigned long long id;
    char *line;
    int r;

    do {
        r = stream_line(&pair->take, &line);
        if (r < 0)
            return r;
    } while (strncmp(line, "DELETED", 7) == 0 || strncmp(line, "WATCHING", 8) == 0);
    if (sscanf(line, "RESERVED %llu %zu", &id, ret_size) != 2)
        return -EPROTO;
    r = stream_bytes(&pair->take, *ret_size + 2, ret_data);
    return r == 0 ? stream_printf(&pair->take, "delete %llu\r\nreserve\r\n", id) : r;
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

int main(int argc, char **argv)
{
    static const struct pair_protocol protocol = {.name = "beanstalkd",
                                                  .taken = "INSERTED ",
                                                  .open = open_tubes,
                                                  .put_head = put_head,
                                                  .ready = job_ready,
                                                  .take = reserved};

    return pair_main(argc, argv, &protocol);
}
