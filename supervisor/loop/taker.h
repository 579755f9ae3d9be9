/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Takes messages that may carry any descriptors, in a process of its own: the taker.
 *
 * A close may take as long as the sender of the descriptor likes: that of a file on a file server
 * (FUSE) waits for the server, the last one of a pipe for its lock, and no signal ends that. Not
 * even the exit of the process that holds the descriptor does without the close. So the supervisor
 * never holds a descriptor that a worker or client has made, unless the taker has found it to be a
 * memfd, whose close waits for nobody. A taker that is stuck is given up, and another one is
 * started; nobody waits for it. It answers before it closes anything.
 *
 * The module has one state per process, like the table of descriptors. Before taker_start() (tests)
 * all is done in the calling process.
 */

#include <stdint.h>

/* Starts the processes. Returns 0 or -errno. */
int taker_start(void);
void taker_stop(void);

/*
 * `owner` is a number for whoever can send to the socket, and gets no further taker while some are
 * stuck because of it: others could have none then. 0 = nobody.
 */

/* Receives the next descriptor, whatever its serial is, as payload_receive_any(): it is a memfd
 * (perhaps without seals), or -EPROTO is returned, also if its owner has too many takers that are
 * stuck; -EMFILE if all together have. */
int taker_receive(int socket, uint64_t owner, uint64_t *ret_serial, int *ret_fd);

/* Takes the next message out of the socket with all that it carries. Returns 0 or -errno: -EUSERS
 * if its owner has too many takers that are stuck. */
int taker_discard(int socket, uint64_t owner);

/* Closes a socket that was shut down (or another descriptor): what the socket was sent and has not
 * received is closed in the taker, so that whoever else holds the socket may close it last. */
void taker_close_socket(int fd);

/* The argument that has the supervisor's program call taker_run(). */
#define TAKER_ARGUMENT "--take-descriptors"
/* The other process: standard input is the socket. Returns its exit status. */
int taker_run(void);
