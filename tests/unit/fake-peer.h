/* SPDX-License-Identifier: MIT */
#pragma once

/* A worker or client that lives in the test's process, on descriptors of its own. */

#include "supervisor/channel/endpoint.h"

struct fake_peer {
    struct endpoint endpoint; /* the supervisor's end */
    struct channel channel;   /* the peer's end */
    int control;
};

void fake_peer_open(struct fake_peer *peer, struct loop *loop,
                    const struct endpoint_options *options, const struct endpoint_handler *handler);
void fake_peer_close(struct fake_peer *peer);

/* Copies descriptors as another process would hold them; -1 stays -1. */
int fake_peer_copy_fd(int fd);
struct channel_fds fake_peer_copy_fds(const struct channel_fds *fds);

/* Lets the loop run for that many turns. */
void fake_peer_turns(struct loop *loop, unsigned n);
