/* SPDX-License-Identifier: MIT */
#pragma once

/* The back ends of the loop, io_uring and epoll. Private to the loop, which chooses one when it is
 * set up; watches, turns, timers and the hot set do not depend on the choice. */

#include "supervisor/loop/loop.h"

struct watch_slot;

struct loop_backend {
    void (*deinit)(struct loop *loop);

    /* Makes the kernel wait for every watch in loop->pending, loop->updates and loop->cancels.
     * False if some must wait for the next turn; watches that the kernel has no room for are tried
     * again. */
    bool (*arm)(struct loop *loop);
    /* Ends a watch, armed or not. Its slot and its descriptor may be reused immediately. */
    void (*unwatch)(struct loop *loop, struct watch_slot *slot);

    /* Fetches events, without sleeping. A back end for which this is not cheap may skip it unless
     * `all` is set. 0 or -errno. */
    int (*fetch)(struct loop *loop, bool all);
    /* Like fetch(), but sleeps until an event, or for `timeout` (USEC_INFINITY = no limit). */
    int (*sleep)(struct loop *loop, usec_t timeout);
    /* Whether fetch() might find something, without a system call. NULL = not known. */
    bool (*may_fetch)(const struct loop *loop);
    /* Whether there are fetched events that were not delivered yet. */
    bool (*has_events)(const struct loop *loop);
    /* Delivers fetched events to loop_slot_complete(). Returns whether there were any. */
    bool (*pass_on)(struct loop *loop);

    /* Implements loop_wake_word(). */
    void (*wake_word)(struct loop *loop, const _Atomic uint32_t *word);
};

extern const struct loop_backend loop_backend_ring, loop_backend_epoll;
