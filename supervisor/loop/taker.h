/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Receives messages that may carry any descriptors, in a separate process: the taker.
 *
 * A close may take as long as the descriptor's sender likes: the close of a file on a file server
 * (FUSE) waits for the server, the last close of a pipe for the pipe's lock, and no signal
 * interrupts either. The exit of a process also waits for these closes. So the supervisor never
 * holds a descriptor that a worker or client has made, unless the taker has found it to be a memfd,
 * whose close does not wait. The taker answers before it closes anything. A stuck taker is
 * abandoned and replaced; the supervisor does not wait for its end.
 *
 * The module has one state per process, like the table of descriptors. Before taker_start(), in
 * tests, the calling process does everything itself.
 */

#include "shared/base/list.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct loop;

/* Starts the processes. Returns 0 or -errno. */
int taker_start(void);
/* The loop that receives the answers, and closes sockets by taker_close_socket(). NULL before
 * loop_free(), which still closes some. */
void taker_set_loop(struct loop *loop);

/* Ends the processes by closing their sockets; does not wait. Idempotent. */
void taker_stop(void);

/*
 * `owner` is a number for the processes that can send to the socket; 0 = none. While too many
 * takers hang because of an owner, it gets no further one, so that other owners still get one.
 */

/* The owner for a user; differs from all addresses and small numbers, which other callers pass. */
static inline uint64_t taker_owner_of_user(uid_t uid)
{
    return UINT64_C(1) << 63 | uid;
}

enum {
    _TAKER_E_SUCCESS,
    TAKER_E_WAIT, /* the taker has not answered yet */
};

/* One request to a taker. Embedded in its owner, which ends it with taker_cancel(). The answer
 * comes within 5 seconds: after that, the taker is replaced. */
struct taker_receipt {
    /* Called after TAKER_E_WAIT: the next call returns the result. */
    void (*answered)(struct taker_receipt *receipt);
    /* Private: */
    enum {
        TAKER_IDLE,
        TAKER_WAITS,
        TAKER_ANSWERED,
    } state;
    struct list link; /* behind the taker's current request */
    int socket;
    uint64_t owner;
    int result, fd;
    uint64_t serial;
};

void taker_receipt_init(struct taker_receipt *receipt,
                        void (*answered)(struct taker_receipt *receipt));
void taker_cancel(struct taker_receipt *receipt); /* harmless if idle */

/* Like payload_receive_any(): receives the next descriptor, with any serial. It is a memfd,
 * perhaps without seals, and the caller owns it. Returns TAKER_E_WAIT; -EPROTO for anything else,
 * and if too many takers hang because of the owner; -EMFILE if too many hang in total, or if the
 * taker gives no answer: then the descriptor may still be in the socket. */
int taker_receive(struct taker_receipt *receipt, int socket, uint64_t owner, uint64_t *ret_serial,
                  int *ret_fd);

/* Removes the next message and its descriptors from the socket. Returns 0, TAKER_E_WAIT or -errno:
 * -EUSERS if too many takers hang because of the owner. */
int taker_discard(struct taker_receipt *receipt, int socket, uint64_t owner);

/* Whether a request waits for its answer. */
bool taker_is_asked(void);

/* Whether so many sockets of the owner wait for a taker that it gets no further ones. */
bool taker_is_full(uint64_t owner);

/* Closes a socket that was shut down, or another descriptor. The taker closes descriptors in
 * messages that were not received, so another process that holds the socket can close it last. */
void taker_close_socket(int fd, uint64_t owner);

/* The argument with which the supervisor's program calls taker_run(). */
#define TAKER_ARGUMENT "--take-descriptors"

/* Runs the taker, whose socket is standard input. Returns its exit status. */
int taker_run(void);
