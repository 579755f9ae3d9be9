/* SPDX-License-Identifier: MIT */
#pragma once

/* The loop's io_uring: set up with the best flags that this kernel takes, and tested before use.
 * Private to the loop. */

#include <liburing.h>
#include <stdbool.h>

struct loop_ring {
    struct io_uring uring;
    bool futex;         /* IORING_OP_FUTEX_WAIT and _WAKE work */
    __u8 quiet_success; /* flags of an operation whose success needs no completion */
};

/* 0, -errno, or LOOP_E_UNAVAILABLE with `*ret_reason`. `force_eventfd`: no futex operations. */
int loop_ring_init(struct loop_ring *ring, unsigned entries, bool force_eventfd,
                   const char **ret_reason);
void loop_ring_deinit(struct loop_ring *ring);

/* Fill in a futex operation, for which liburing 2.3 has no helper. */
void loop_ring_prep_futex_wait(struct io_uring_sqe *sqe, const void *word, unsigned expected);
void loop_ring_prep_futex_wake(struct io_uring_sqe *sqe, const void *word, unsigned n_waiters);
