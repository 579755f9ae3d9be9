/* SPDX-License-Identifier: MIT */
#pragma once

/* How the loop waits: what differs between io_uring and epoll. Private to the loop, which chooses
 * one when it is set up; watches, turns, timers and the hot set do not know which. */

#include "supervisor/loop/loop.h"

struct watch_slot;

struct loop_backend {
    void (*deinit)(struct loop *loop);

    /* Has the kernel wait for every watch in loop->pending, loop->updates and loop->cancels. False
     * if some must wait for the next turn; what the kernel has no room for is tried again later. */
    bool (*arm)(struct loop *loop);
    /* Ends a watch, armed or not. Its slot and its descriptor may be reused at once. */
    void (*unwatch)(struct loop *loop, struct watch_slot *slot);

    /* Fetches what has happened, without sleeping. A back end for which that is not cheap may leave
     * it out unless `all` is set. 0 or -errno. */
    int (*fetch)(struct loop *loop, bool all);
    /* The same, and sleeps until something happens, or for `timeout` (USEC_INFINITY = no limit). */
    int (*sleep)(struct loop *loop, usec_t timeout);
    /* Whether fetch() might find something, without a system call. NULL = that cannot be told. */
    bool (*may_fetch)(const struct loop *loop);
    /* Whether something was fetched and not passed on yet. */
    bool (*has_events)(const struct loop *loop);
    /* Passes on what was fetched, to loop_slot_complete(). Returns whether there was anything. */
    bool (*pass_on)(struct loop *loop);

    /* loop_wake_word() */
    void (*wake_word)(struct loop *loop, const _Atomic uint32_t *word);
};

extern const struct loop_backend loop_backend_ring, loop_backend_epoll;
