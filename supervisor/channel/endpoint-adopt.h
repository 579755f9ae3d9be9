/* SPDX-License-Identifier: MIT */
#pragma once

/* Endpoints across a crash: the keeper holds their descriptors. */

#include "supervisor/channel/endpoint.h"

/*
 * After a crash: continues with a peer of the former supervisor. Its cursors continue, and the
 * peer's records are read as soon as endpoint_open() is called. Records that the former supervisor
 * was handling are read again; a blob that it had received is lost (-ECONNRESET from
 * endpoint_take()).
 *
 *     endpoint_adopt()       with the descriptors that the keeper held, in the order of
 *                            endpoint_held_fds()
 *     endpoint_held_fds()    to the keeper, which then has the next inbox instead of the former
 *     endpoint_hand_over()   to the peer; only then, since the peer reads no other inbox afterwards
 *     endpoint_open()
 *
 * endpoint_adopt() takes over the descriptors on success. Returns 0, -EPROTO if the memories are
 * not what they must be, or another -errno.
 */
struct endpoint_adoption {
    struct endpoint_fds fds;  /* `control`: our end */
    struct blob_share *blobs; /* as in endpoint_options */
    /* The queue for the wake-up of the peer, since a thousand wake-ups keep all processors busy. A
     * record for the peer wakes it sooner. NULL = it is woken immediately. */
    struct work_queue *announcements;
    uint32_t kept; /* enum memory_kept */
};
int endpoint_adopt(struct endpoint *endpoint, struct loop *loop,
                   const struct endpoint_adoption *adoption,
                   const struct endpoint_handler *handler);
void endpoint_hand_over(struct endpoint *endpoint);

/* The parts of an endpoint that the keeper holds. */
#define ENDPOINT_HELD_FDS 5
/* Lists the descriptors, which stay the endpoint's, before endpoint_forget_fds() or
 * endpoint_hand_over(). Returns their number. */
size_t endpoint_held_fds(const struct endpoint *endpoint, int ret[ENDPOINT_HELD_FDS]);
/* The reverse of endpoint_held_fds(). Returns 0 or -EPROTO. */
int endpoint_fds_from_held(struct endpoint_fds *ret, const int *fds, size_t n);
