/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A network of their own for the processes of a group: a namespace with a loopback interface only.
 * To make one takes milliseconds, so the first process makes it and leaves its descriptor in a
 * storage, where later ones find it. Nobody else waits for that, or has to end it.
 */

/* A pair of connected datagram sockets. */
struct sandbox_network {
    int storage[2];
};

/* Moves this process into the network of this storage; makes one if there is none, and may wait
 * for another process that does so. Returns 0 or -errno. */
int sandbox_network_join(const struct sandbox_network *network);
