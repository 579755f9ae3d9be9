/* SPDX-License-Identifier: MIT */

/* redis as a queue: a list of jobs and a list of results, LPUSH and BRPOP. */

#include "tests/bench/load/pair.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define POPS_MAX 64u

static int ask_for(struct pair *pair, unsigned n)
{
    int r = 0;

    while (r == 0 && n-- > 0)
        r = stream_printf(&pair->take, "*3\r\n$5\r\nBRPOP\r\n$%zu\r\n%s\r\n$1\r\n0\r\n",
                          strlen(pair->from), pair->from);
    return r;
}

static int open_pops(struct pair *pair, unsigned depth)
{
    return ask_for(pair, depth < POPS_MAX ? depth : POPS_MAX);
}

static int push_head(struct pair *pair, size_t size)
{
    return stream_printf(&pair->put, "*3\r\n$5\r\nLPUSH\r\n$%zu\r\n%s\r\n$%zu\r\n",
                         strlen(pair->to), pair->to, size);
}

/* An array of the list's name and the value. */
static int popped(struct pair *pair, char **ret_data, size_t *ret_size)
{
    char *line;
    int r = stream_line(&pair->take, &line);

    if (r == 0 && strcmp(line, "*2") != 0)
        return -EPROTO;
    for (int i = 0; r == 0 && i < 2; i++) {
        r = stream_line(&pair->take, &line);
        if (r == 0 && sscanf(line, "$%zu", ret_size) != 1)
            return -EPROTO;
        if (r == 0)
            r = stream_bytes(&pair->take, *ret_size + 2, ret_data);
    }
    return r == 0 ? ask_for(pair, 1) : r;
}

int main(int argc, char **argv)
{
    static const struct pair_protocol protocol = {
        .name = "redis", .taken = ":", .open = open_pops, .put_head = push_head, .take = popped};

    return pair_main(argc, argv, &protocol);
}
