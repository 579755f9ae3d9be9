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

#include <stdint.h>
#include <sys/types.h>

struct loop;

/* Starts the processes. Returns 0 or -errno. */
int taker_start(void);

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

/* Like payload_receive_any(): receives the next descriptor, with any serial. It is a memfd,
 * perhaps without seals, and the caller owns it. Returns -EPROTO for anything else, and if too many
 * takers hang because of the owner; -EMFILE if too many hang in total. Waits for the taker's
 * answer, at most 3 seconds. */
int taker_receive(int socket, uint64_t owner, uint64_t *ret_serial, int *ret_fd);

/* Removes the next message and its descriptors from the socket. Returns 0 or -errno: -EUSERS if too
 * many takers hang because of the owner. */
int taker_discard(int socket, uint64_t owner);

/* Closes a socket that was shut down, or another descriptor. The taker closes descriptors in
 * messages that were not received, so another process that holds the socket can close it last. */
void taker_close_socket(int fd, uint64_t owner);

/* loop_close() of a socket with an owner. */
void taker_close_later(struct loop *loop, int fd, uint64_t owner);

/* The argument with which the supervisor's program calls taker_run(). */
#define TAKER_ARGUMENT "--take-descriptors"

/* Runs the taker, whose socket is standard input. Returns its exit status. */
int taker_run(void);
