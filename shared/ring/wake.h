/* SPDX-License-Identifier: MIT */
#pragma once

/* Sleeping and waking between two processes that share a cursor word.
 *
 * Consumer: raise flag, re-check the cursor, wait on it.   Producer: publish, look at the flag,
 * wake. Both sides put a sequentially consistent fence between their store and their load; that is
 * what makes a lost wake-up impossible (store-buffer pattern; modelled under tests/model/).
 *
 * Two back ends, chosen by the supervisor by probing and told in the memory header:
 *   futex    the cursor word itself, flags of futex2 (32 bit, shared): futex(2) in workers,
 *            IORING_OP_FUTEX_WAIT/WAKE in the supervisor (Linux 6.7)
 *   eventfd  one per direction, for older kernels and for a supervisor without io_uring; that to
 *            the peer may be a pipe, which the peer uses like an eventfd */

#include "shared/base/clock.h"
#include <stdatomic.h>
#include <stdint.h>

enum wake_backend {
    WAKE_FUTEX = 1,
    WAKE_EVENTFD = 2,
};

/* The fence between "store mine" and "load theirs" on both sides; its partner is the other side's
 * wake_fence(). ThreadSanitizer does not model fences, but needs none here: data is handed over by
 * the cursors' release and acquire alone. */
static inline void wake_fence(void)
{
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
    atomic_thread_fence(memory_order_seq_cst);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
}

/* Waits until *word differs from `expected`, a wake-up, or `timeout` (relative; USEC_INFINITY =
 * none). 0 when woken or already different, -ETIMEDOUT, -EINTR. Spurious returns of 0 are allowed:
 * re-check. */
int wake_futex_wait(const _Atomic uint32_t *word, uint32_t expected, usec_t timeout);

/* The same for two words. Needs futex_waitv(2) (Linux 5.16); without it a change of the second word
 * is noticed up to 100 ms late. */
int wake_futex_wait_either(const _Atomic uint32_t *word, uint32_t expected,
                           const _Atomic uint32_t *other, uint32_t other_expected, usec_t timeout);

/* Wakes all waiters on the word, or the first `WAKE_PEER_MAX`. Returns their number. The supervisor
 * takes the second: a peer may have armed any number of waits, and one of its own would be late. */
int wake_futex_wake(const _Atomic uint32_t *word);
int wake_futex_wake_peer(const _Atomic uint32_t *word);
#define WAKE_PEER_MAX 8 /* more than the threads of an honest peer that wait on a word */

/* Waits for the eventfd (or pipe) and reads from it. Results as above. */
int wake_eventfd_wait(int fd, usec_t timeout);

/* Adds one; a full counter or pipe (-EAGAIN) wakes as well. Both holders of an eventfd can make it
 * blocking: if the peer is not trusted, see loop_wake_eventfd(). */
void wake_eventfd_wake(int fd);
