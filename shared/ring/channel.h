/* SPDX-License-Identifier: MIT */
#pragma once

/* One side's view of an inbox/outbox pair: it produces into the memory it owns ("mine") and
 * consumes from the other ("theirs"). The supervisor owns inboxes; workers and attached clients own
 * outboxes.
 *
 * The channel knows the sleep/wake protocol but not how this side waits: the supervisor waits in
 * its loop, a worker in channel_wait(). Waking is a callback for the same reason. */

#include "shared/base/clock.h"
#include "shared/ring/memory.h"
#include "shared/ring/ring.h"
#include "shared/ring/spin.h"
#include "shared/ring/wake.h"
#include <stdbool.h>

struct channel {
    struct memory mine, theirs;
    struct memory_words *words, *their_words; /* in the outbox */
    struct ring_producer out;
    struct ring_consumer in;
    enum wake_backend backend;
    struct spin spin; /* of channel_spin() */
    int wake_fd; /* wakes the peer: a socket in the supervisor, an eventfd in the peer; there, with
                    futexes: -1 */
    int wait_fd; /* what this side sleeps on: an eventfd in the supervisor, with futexes: -1; the
                    other end of the socket in the peer */
    int peer_fd; /* in the supervisor, until it is handed over: the peer's end of `wake_fd` */
    int self_fd; /* in the peer: its own eventfd, on which it also sleeps */
    const _Atomic uint32_t *announced; /* in the peer: the epoch of the last inbox; else NULL */
    bool wakeable;                     /* channel_wake_self() may end the current wait */
    _Atomic bool woken;
    /* Wakes the peer sleeping on `word`, one of ours, or on its descriptor (`word` NULL, or that
     * back end); the default makes the system call immediately. */
    void (*wake)(struct channel *channel, const _Atomic uint32_t *word);
};

/* clang-format off */
#define CHANNEL_NULL {.mine = MEMORY_NULL, .theirs = MEMORY_NULL, .wake_fd = -1, .wait_fd = -1, \
                      .peer_fd = -1, .self_fd = -1}
/* clang-format on */

struct channel_options {
    uint32_t ring_size;
    uint32_t inline_max;
    uint32_t spin_usec; /* of the peer, before it sleeps */
    enum wake_backend backend;
};

/* The descriptors for the other side, to inherit or to send. `wake_fd` is -1 with futexes. */
struct channel_fds {
    int inbox, outbox;
    int wait_fd; /* peer sleeps here */
    int wake_fd; /* peer wakes us here */
};

/* clang-format off */
#define CHANNEL_FDS_NULL {.inbox = -1, .outbox = -1, .wait_fd = -1, .wake_fd = -1}
/* clang-format on */

/* Supervisor side: makes both memories and the means to wake up. `*ret_fds` are the descriptors for
 * the peer, which belong to the channel. 0 or -errno; on error nothing is left behind. */
int channel_create(struct channel *ret, const struct channel_options *options,
                   struct channel_fds *ret_fds);

/* Closes the memfds and the peer's end, once the peer has its own descriptors; the mappings stay.
 */
void channel_close_fds(struct channel *channel);

/* Peer side: takes over all descriptors on success. -EPROTO if the memories are not what they must
 * be. After a peer has died, a new one can open the same memories and continues where the old one
 * stopped (see ring_producer_init()). */
int channel_open(struct channel *ret, const struct channel_fds *fds);

/*
 * A new supervisor takes over the channels of its predecessor, whose process is gone, and the peer
 * continues at the same cursors:
 *
 *   supervisor   channel_adopt(); the descriptor `mine.fd` of the next inbox goes to the peer over
 *                its control socket, and to the keeper; then channel_move(), channel_announce()
 *   peer         finds nothing more to read, and channel_is_moved(); receives the descriptor;
 *                channel_follow()
 *
 * The descriptors in the control socket keep their order: the peer drops descriptors before an
 * inbox that no record names. After several restarts in a row, the peer takes one inbox after the
 * other, since each may have records of its own.
 */

/* Supervisor side. `fds` are the peer's descriptors (struct channel_fds), with the former inbox; on
 * success they are taken over. Returns 0, -EPROTO if the memories are not what they must be or have
 * another back end, or another -errno. */
int channel_adopt(struct channel *ret, const struct channel_fds *fds, enum wake_backend backend);
/* Supervisor side: notes that the next inbox is in the peer's control socket. A peer that is awake,
 * or is woken by a record in the inbox, takes it. */
void channel_move(struct channel *channel);
/* Supervisor side: wakes the peer to take it now. */
void channel_announce(struct channel *channel);
/* After channel_adopt(): sets the things for which the peer can continue to wait (enum
 * memory_kept). */
void channel_set_kept(struct channel *channel, uint32_t kept);

/* Peer side: whether the next inbox is in the control socket. This ends sleeps: channel_wait()
 * returns 0, as if there were something to read. False in the supervisor. */
bool channel_is_moved(const struct channel *channel);
/* Peer side: continues with the next inbox, after everything in the present one is read. `fd` stays
 * the caller's. Returns 0, -EPROTO, or another -errno. */
int channel_follow(struct channel *channel, int fd);

void channel_deinit(struct channel *channel);

/* Publishes what was committed and wakes the peer if its sleeping flag is up. */
void channel_publish(struct channel *channel);

/* Releases consumed space and wakes the peer if it is blocked on a full ring. */
void channel_release(struct channel *channel);

/* Prepares to sleep until the peer publishes: raises the flag and checks again. True: sleep while
 * the word their_words->bell is `*ret_expected`. False: there is something to read, and the flag is
 * down. Call channel_release() before: a peer that waits for that space publishes nothing. */
bool channel_prepare_sleep(struct channel *channel, uint32_t *ret_expected);
void channel_end_sleep(struct channel *channel);

/* Like channel_prepare_sleep(), but for a full ring, on their_words->head. `need` = bytes of body
 * that must fit. False: it fits now, or never will, as ring_reserve() reports. Publishes committed
 * records first: the peer can only make room by consuming published ones. */
bool channel_prepare_block(struct channel *channel, uint32_t need, uint32_t *ret_expected);
void channel_end_block(struct channel *channel);

/* Peer side: makes `wait_fd` become readable when there is something to read, with any back end.
 * True: wait for it or for `self_fd`, then call channel_end_sleep(). False: there is already
 * something, or `*ret_woken`: another thread ends the wait. Empties both. */
bool channel_arm(struct channel *channel, bool *ret_woken);

/* Peer side: makes `self_fd` readable now. */
void channel_ring_self(struct channel *channel);

/* Peer side: makes the current `wakeable` wait, or else the next one, return -EINTR. The only
 * function here that other threads may call. */
void channel_wake_self(struct channel *channel);

/* Peer side: polls for something to read as long as that pays off (spin.h). Returns whether there
 * is any. */
bool channel_spin(struct channel *channel);

/* Peer side, plain system calls. Waits until there is something to read, or for `timeout`. 0, also
 * without a reason, -ETIMEDOUT, -EINTR. */
int channel_wait(struct channel *channel, usec_t timeout);
/* Like channel_wait(), but returns 0 also when the supervisor's control word is no longer
 * `control`. */
int channel_wait_control(struct channel *channel, uint32_t control, usec_t timeout);

/* Waits until a body of `need` bytes fits; publishes what was committed. 0, -ETIMEDOUT, -EINTR,
 * -EMSGSIZE if it never can, -EPROTO like ring_reserve(). */
int channel_wait_space(struct channel *channel, uint32_t need, usec_t timeout);
