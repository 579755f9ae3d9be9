/* SPDX-License-Identifier: MIT */
#include "tests/unit/fake-peer.h"

#include <check.h>
#include <fcntl.h>

int fake_peer_copy_fd(int fd)
{
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

struct channel_fds fake_peer_copy_fds(const struct channel_fds *fds)
{
    return (struct channel_fds){
        .inbox = fake_peer_copy_fd(fds->inbox),
        .outbox = fake_peer_copy_fd(fds->outbox),
        .wait_fd = fake_peer_copy_fd(fds->wait_fd),
        .wake_fd = fake_peer_copy_fd(fds->wake_fd),
    };
}

void fake_peer_open(struct fake_peer *peer, struct loop *loop,
                    const struct endpoint_options *options, const struct endpoint_handler *handler)
{
    struct endpoint_fds fds;

    ck_assert_int_eq(endpoint_init(&peer->endpoint, loop, options, handler, &fds), 0);
    struct channel_fds theirs = fake_peer_copy_fds(&fds.channel);
    peer->control = fake_peer_copy_fd(fds.control);
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
