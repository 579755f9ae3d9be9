/* SPDX-License-Identifier: MIT */
#pragma once

/* What carries an actor's records: the end of a channel that a worker or a client holds. */

#include "shared/protocol/payload.h"
#include "shared/ring/channel.h"

struct carrier_class {
    /* Room for a record, waiting for it if need be, and its end; shown to the supervisor at once.
     * 0 or -errno. `size` is what a put function returned. */
    int (*reserve)(void *owner, uint32_t size, void **ret);
    int (*commit)(void *owner, uint16_t kind, int size);
    /*
     * Takes in what has arrived, without handling it; waits for it up to `timeout`, or for less: 1
     * when there was something, else 0. -EINTR when a signal handler ran (or 0), -EPIPE when the
     * supervisor is gone.
     */
    int (*pump)(void *owner, usec_t timeout);
    /* As troupe_actor_turn(). */
    int (*turn)(void *owner, usec_t timeout);
    /* Handles nothing more from here on, and tells why. NULL: it cannot end itself. */
    int (*leave)(void *owner, const char *reason);
};

struct carrier {
    const struct carrier_class *class;
    void *owner;
    struct channel *channel;
    uint64_t *blobs_sent; /* also the serial of the last one */
    uint32_t inline_max;
    int control;
    const char *address; /* the actor's; borrowed from the owner */
};

/*
 * A copy of `data` as a blob, its descriptor sent: to be named by the record that has room already.
 * 0, -EPIPE, or as blob_copy().
 */
int carrier_send_blob(const struct carrier *carrier, const void *data, size_t size,
                      struct payload_wire *ret);
