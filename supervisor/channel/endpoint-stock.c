/* SPDX-License-Identifier: MIT */
/* What an endpoint and its peer share: made with the endpoint, or in advance. */
#include "supervisor/channel/endpoint-private.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static struct channel_options options_of(const struct loop *loop,
                                         const struct endpoint_options *options)
{
    struct channel_options ret;

    memset(&ret, 0, sizeof(ret)); /* it is compared as bytes */
    ret.ring_size = options->ring_size;
    ret.inline_max = options->inline_max;
    ret.spin_usec = options->spin_usec;
    ret.backend = loop_wake_backend(loop);
    return ret;
}

static int make(struct endpoint_stock *ret, const struct channel_options *options)
{
    int r = channel_create(&ret->channel, options, &ret->fds.channel);

    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret->control) < 0) {
        r = -errno;
        channel_deinit(&ret->channel);
        return r;
    }
    ret->fds.control = ret->control[1];
    ret->options = *options;
    ret->full = true;
    return 0;
}

void endpoint_stock_fill(struct endpoint_stock *stock, const struct loop *loop,
                         const struct endpoint_options *options)
{
    const struct channel_options wanted = options_of(loop, options);

    if (!stock->full)
        (void)make(stock, &wanted); /* else it is made when it is needed */
}

void endpoint_stock_deinit(struct endpoint_stock *stock)
{
    if (!stock->full)
        return;
    channel_deinit(&stock->channel);
    (void)close_fd(stock->control[0]);
    (void)close_fd(stock->control[1]);
    stock->full = false;
}

int endpoint_stock_take(const struct loop *loop, const struct endpoint_options *options,
                        struct endpoint_stock *ret)
{
    const struct channel_options wanted = options_of(loop, options);
    struct endpoint_stock *stock = options->stock;

    if (!stock || !stock->full || memcmp(&stock->options, &wanted, sizeof(wanted)) != 0)
        return make(ret, &wanted);
    *ret = *stock;
    stock->full = false;
    return 0;
}
