/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A network for the processes of a group: a namespace with a loopback interface only, which takes
 * as long to make as half of a start. The first process makes it, and leaves its descriptor in a
 * storage, where later ones find it. No other process waits for that, or has to end it.
 */

/* A pair of connected datagram sockets. */
struct sandbox_network {
    int storage[2];
};

/* Moves this process into the network, and makes that if the storage is empty. May wait for another
 * process that does so. Returns 0 or -errno. */
int sandbox_network_join(const struct sandbox_network *network);
