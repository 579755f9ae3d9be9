/* SPDX-License-Identifier: MIT */
#include "tests/unit/fake-peer.h"

#include <check.h>
#include <fcntl.h>

static int copy_fd(int fd)
{
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void fake_peer_open(struct fake_peer *peer, struct loop *loop,
                    const struct endpoint_options *options, const struct endpoint_handler *handler)
{
    struct endpoint_fds fds;

    ck_assert_int_eq(endpoint_init(&peer->endpoint, loop, options, handler, &fds), 0);
    struct channel_fds theirs = (struct channel_fds){
        .inbox = copy_fd(fds.channel.inbox),
        .outbox = copy_fd(fds.channel.outbox),
        .wait_fd = copy_fd(fds.channel.wait_fd),
        .wake_fd = copy_fd(fds.channel.wake_fd),
    };
    peer->control = copy_fd(fds.control);
    endpoint_forget_fds(&peer->endpoint, &fds);
    ck_assert_int_eq(channel_open(&peer->channel, &theirs), 0);
}

void fake_peer_close(struct fake_peer *peer)
{
    endpoint_deinit(&peer->endpoint);
    channel_deinit(&peer->channel);
    peer->control = close_fd(peer->control);
}

struct turns {
    struct loop_deferred deferred;
    struct loop *loop;
    unsigned n;
};

static void on_turn(struct loop_deferred *deferred)
{
    struct turns *turns = list_entry(deferred, struct turns, deferred);

    if (--turns->n == 0)
        loop_stop(turns->loop);
    else
        loop_defer(turns->loop, &turns->deferred);
}

void fake_peer_turns(struct loop *loop, unsigned n)
{
    struct turns turns = {.loop = loop, .n = n};

    loop_deferred_init(&turns.deferred, on_turn);
    loop_defer(loop, &turns.deferred);
    ck_assert_int_eq(loop_run(loop), 0);
}
