/* SPDX-License-Identifier: MIT */
#pragma once

/* Sleeping and waking between two processes that share a cursor word.
 *
 * Consumer: raise flag, re-check the cursor, wait on it.   Producer: publish, look at the flag,
 * wake. Both sides put a sequentially consistent fence between their store and their load; that is
 * what makes a lost wake-up impossible (store-buffer pattern; modelled under tests/model/).
 *
 * Two back ends; the supervisor probes for one and writes it to the memory header:
 *   futex    the cursor word itself, flags of futex2 (32 bit, shared): futex(2) in workers,
 *            IORING_OP_FUTEX_WAIT/WAKE in the supervisor (Linux 6.7)
 *   eventfd  for older kernels and for a supervisor without io_uring: an eventfd that wakes the
 *            supervisor. It wakes the peer through a socket, also with futexes if the peer asks for
 *            it: send(2) with MSG_DONTWAIT does not wait, whatever the peer does to its end. (A
 *            write to an eventfd waits if the peer has filled it and made it blocking, a write to a
 *            pipe for its lock.) */

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
 * none). 0 if woken or already different, -ETIMEDOUT, -EINTR. 0 may be spurious: check the word
 * again. */
int wake_futex_wait(const _Atomic uint32_t *word, uint32_t expected, usec_t timeout);

/* Wakes all waiters on the word. Returns their number. */
int wake_futex_wake(const _Atomic uint32_t *word);

/* Wakes at most WAKE_PEER_MAX waiters on a word that a peer can wait on, and returns their number:
 * a hostile peer may arm any number of waits, and waking them all would take the supervisor's time.
 */
#define WAKE_PEER_MAX 8 /* more than the threads of an honest peer that wait on a word */
int wake_futex_wake_peer(const _Atomic uint32_t *word);

/* Waits until `fd`, a socket, or `other`, an eventfd, is readable, and empties both; both are
 * non-blocking. If `other` is -1, `fd` is an eventfd, which may block. Returns like
 * wake_futex_wait(). */
int wake_eventfd_wait(int fd, int other, usec_t timeout);

/* Reads all wake-ups from a non-blocking eventfd or socket. */
void wake_empty(int fd);

/* Adds one to an eventfd; a full counter (-EAGAIN) also wakes. Not for an eventfd that an untrusted
 * process holds: each holder can make it blocking. */
void wake_eventfd_wake(int fd);

/* Supervisor side: wakes the peer at the other end of the socket. Does not wait; a full socket also
 * wakes. */
void wake_socket(int fd);
