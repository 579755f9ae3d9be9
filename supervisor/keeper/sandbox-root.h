/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What processes with a root of their own have in common is mounted once, in a mount namespace
 * whose copies they get: to make one takes the kernel longer than all else from clone to exec. A
 * process that finds none, or one made of other files than it sees itself, makes one and offers it
 * to the keeper (roots.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of what the root was made, in bytes. */
#define SANDBOX_ROOT_SEEN_MAX ((size_t)8 * 1024)

#define SANDBOX_ROOT_NULL                                                                          \
    {                                                                                              \
        .fds = {-1, -1}, .offers = -1                                                              \
    }

/* Stands in front of that in an offer, whose descriptors are `fds`. */
struct sandbox_root_id {
    uint64_t key; /* of the paths that are listed */
    uint64_t generation;
};

enum {
    SANDBOX_ROOT_NAMESPACE,
    SANDBOX_ROOT_TOP, /* its root directory */
    _SANDBOX_ROOT_N_FDS,
};

struct sandbox_root {
    int fds[_SANDBOX_ROOT_N_FDS]; /* -1 = none is prepared */
    int offers;                   /* a datagram socket; -1 = make none that others could get */
    struct sandbox_root_id id;
    const void *seen;
    size_t size;
};

/* Whether one is prepared, made of that. */
bool sandbox_root_matches(const struct sandbox_root *root, const void *seen, size_t size);

/* Moves this process into a copy. Returns 0 or -errno. */
int sandbox_root_enter(const struct sandbox_root *root);

/* Offers `mounts`, the namespace of this process, to which nothing is added any more, and moves the
 * process into a copy. If nobody takes it, the process keeps it. Returns 0 or -errno. */
int sandbox_root_offer(const struct sandbox_root *root, int mounts, const void *seen, size_t size);
