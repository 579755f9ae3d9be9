/* SPDX-License-Identifier: MIT */
#pragma once

/* Payloads that are kept as descriptors. Starting workers and connecting clients also need
 * descriptors, so all blobs together have a bound, and each sender (a group or a user) has a share
 * of it. A user that connects again has the share in which its earlier blobs are still counted.
 * The share also counts the jobs that it waits for, and the memory of answers that it has not read.
 */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include <stdbool.h>
#include <stdint.h>

struct blob_share;

struct blob_quota {
    uint64_t n, max;
    uint64_t bytes, bytes_max; /* of waits and answers */
    /* A descriptor with this number or a higher one shows that few are left. */
    int fd_max;
    /* Drops one in the share's `kept`, which is not empty. */
    void (*spare)(struct blob_share *share);
    struct index shares; /* struct blob_share.by_owner */
};

void blob_quota_init(struct blob_quota *quota); /* no bound */

/* The share of one sender. */
struct blob_share {
    struct blob_quota *quota;
    uint64_t n, bytes;
    struct list kept; /* blobs that can be dropped, oldest first; linked by their owner */
    unsigned references;
    unsigned n_waiters; /* jobs that attached clients of this owner wait for */
    uint64_t owner;     /* of what their sockets hold, for the taker: never that of another */
    struct index_entry by_owner;
};

/* Return a reference to the share of a new owner, or of this one, for example a user; the blobs
 * keep a share until they are gone. NULL when out of memory. */
struct blob_share *blob_share_new(struct blob_quota *quota);
struct blob_share *blob_share_of(struct blob_quota *quota, uint64_t owner);
struct blob_share *blob_share_unref(struct blob_share *share); /* NULL allowed; returns NULL */

/* Whether the share leaves as many bytes to others as it then has. `share` NULL = no bound. */
bool blob_share_has_room(const struct blob_share *share, uint64_t bytes);
/* Counts bytes, beyond the bound too, with a reference to the share; or does not count them any
 * more. */
void blob_share_charge(struct blob_share *share, uint64_t bytes);
void blob_share_discharge(struct blob_share *share, uint64_t bytes);

/* A descriptor with references: a message for many recipients needs only one. */
struct held_blob {
    int fd;
    unsigned references;
    uint64_t size;
    struct blob_share *share;
};

enum {
    _HELD_BLOB_E_SUCCESS,
    HELD_BLOB_E_QUOTA, /* the sender, or all senders, hold too many descriptors */
};

/* Takes over `fd`, a checked blob of `size` bytes, with one reference. A share may hold as many
 * blobs as are left in the quota. With `spare`, some of its `kept` blobs make room. Returns
 * 0, HELD_BLOB_E_QUOTA or -ENOMEM. */
int held_blob_new(struct held_blob **ret, struct blob_share *share, int fd, uint64_t size,
                  bool spare);
struct held_blob *held_blob_unref(struct held_blob *blob); /* returns NULL */
