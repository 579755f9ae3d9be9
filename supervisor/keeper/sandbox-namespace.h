/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A namespace that several processes are to have, and that takes milliseconds to make: the first
 * process makes it and leaves its descriptor in a storage, where later ones find it. Nobody else
 * waits for that, or has to end it.
 */

/* The storage: a pair of connected datagram sockets. */
struct sandbox_namespace {
    int storage[2];
};

/*
 * Moves this process into the namespace that is in the storage; `type` is its CLONE_NEW*. If there
 * is none, make() is called, which moves the process into a new one, and returns a descriptor of
 * that or -errno. May wait for another process that does so. Returns 0 or -errno.
 */
int sandbox_namespace_join(const struct sandbox_namespace *namespace, int type, int (*make)(void));
