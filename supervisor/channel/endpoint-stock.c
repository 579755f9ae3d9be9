/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/endpoint-stock.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <sys/socket.h>

static int make(struct endpoint_parts *ret, struct loop *loop,
                const struct endpoint_options *options)
{
    const struct channel_options channel_options = {
        .ring_size = options->ring_size,
        .inline_max = options->inline_max,
        .spin_usec = options->spin_usec,
        .backend = loop_wake_backend(loop),
    };
    int sockets[2], r;

    r = channel_create(&ret->channel, &channel_options, &ret->fds.channel);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) < 0) {
        r = -errno;
        channel_deinit(&ret->channel);
        return r;
    }
    ret->control = sockets[0];
    ret->fds.control = sockets[1];
    return 0;
}

static void drop(struct endpoint_stock *stock)
{
    if (!stock->filled)
        return;
    stock->filled = false;
    channel_deinit(&stock->parts.channel);
    close_fd(stock->parts.control);
    close_fd(stock->parts.fds.control);
}

static void fill(struct loop_deferred *deferred)
{
    struct endpoint_stock *stock = list_entry(deferred, struct endpoint_stock, filling);

    stock->filled = make(&stock->parts, stock->loop, &stock->options) == 0;
}

void endpoint_stock_init(struct endpoint_stock *stock, struct loop *loop)
{
    *stock = (struct endpoint_stock){.loop = loop};
    loop_deferred_init(&stock->filling, fill);
}

void endpoint_stock_deinit(struct endpoint_stock *stock)
{
    loop_undefer(&stock->filling);
    drop(stock);
}

void endpoint_stock_fill(const struct endpoint_options *options)
{
    struct endpoint_stock *stock = options->stock;

    if (stock->filled)
        return;
    stock->options = *options;
    loop_defer(stock->loop, &stock->filling);
}

static bool fits(const struct endpoint_stock *stock, const struct endpoint_options *options)
{
    const struct endpoint_options *made = &stock->options;

    return made->ring_size == options->ring_size && made->inline_max == options->inline_max &&
           made->spin_usec == options->spin_usec;
}

int endpoint_stock_take(struct endpoint_parts *ret, struct loop *loop,
                        const struct endpoint_options *options)
{
    struct endpoint_stock *stock = options->stock;

    /* The configuration may have changed since the stock was filled. */
    if (stock && !fits(stock, options))
        drop(stock);
    if (!stock || !stock->filled)
        return make(ret, loop, options);
    *ret = stock->parts;
    stock->filled = false;
    return 0;
}
