/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The memory and descriptors of one more endpoint, created when there is time, so that a worker
 * that dies has its successor sooner. There is one stock, for all groups.
 */

#include "supervisor/channel/endpoint.h"

struct endpoint_parts {
    struct channel channel;
    int control; /* our end; the peer's is in `fds` */
    struct endpoint_fds fds;
};

struct endpoint_stock {
    struct loop *loop;
    struct loop_deferred filling;
    struct endpoint_options options; /* of the parts */
    bool filled;
    struct endpoint_parts parts;
};

void endpoint_stock_init(struct endpoint_stock *stock, struct loop *loop);
void endpoint_stock_deinit(struct endpoint_stock *stock);

/* Fills options->stock at the end of this turn. Best effort. Idempotent. */
void endpoint_stock_fill(const struct endpoint_options *options);

/* Takes the parts from options->stock, or makes them. 0 or -errno, nothing left behind. */
int endpoint_stock_take(struct endpoint_parts *ret, struct loop *loop,
                        const struct endpoint_options *options);
