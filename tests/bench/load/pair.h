/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Systems of which a connection that waits for a job can do nothing else meanwhile: each side has
 * two. Jobs and results are in two queues, or whatever the system has.
 */

#include "tests/bench/load/load.h"
#include "tests/bench/load/stream.h"

struct pair {
    struct stream put, take;
    const char *to, *from;
    unsigned n_unanswered; /* puts */
};

struct pair_protocol {
    const char *name;
    const char *taken; /* what the answer to a put begins with */
    /* Up to `depth` jobs may be waited for. */
    int (*open)(struct pair *pair, unsigned depth);
    /* What goes before `size` bytes and a line end. */
    int (*put_head)(struct pair *pair, size_t size);
    /* Whether a job is there. NULL: if anything is. */
    int (*ready)(struct stream *take);
    /* Takes the next job and waits for another one. */
    int (*take)(struct pair *pair, char **ret_data, size_t *ret_size);
};

int pair_main(int argc, char **argv, const struct pair_protocol *protocol);
