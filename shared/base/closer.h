/* SPDX-License-Identifier: MIT */
#pragma once

/* Closes descriptors in a thread of its own, so that the caller, the loop or the keeper, does not
 * wait.
 *
 * The last close of a file can take as long as its creator likes: a TCP socket with SO_LINGER
 * waits for its peer, a file on a file server for the server, a large memfd until its pages are
 * freed. A Unix socket closes the descriptors that were sent to it and not received. So all
 * descriptors that a peer has made, or may have filled, are closed here.
 *
 * There is one closer per process, like the table of descriptors. */

/* Starts the thread. Until then closer_close() is close(2). 0 or -errno. */
int closer_start(void);

/* Closes `fd` soon; keeps errno. Not for a socket whose poll is still armed in a ring: the ring
 * would hold the last reference, and the loop would wait. See loop_close(). */
void closer_close(int fd);

/* The same for a Unix socket that was shut down, and that another process holds as well: what it
 * was sent and has not received is closed here first, so that the other process does not wait for
 * that if it closes last. */
void closer_close_socket(int fd);

/* Closes a descriptor that keeper and supervisor pass to each other: a socket as closer_close(),
 * anything else, which we have made and nobody can fill, at once. Returns -1. */
int closer_close_passed(int fd);

/* Waits until all are closed, for at most `msec`. Call it before fork(): the new process would get
 * copies of what is still to be closed, and its exec would close them last. */
void closer_settle(unsigned msec);

/* In a child of fork(), which has no threads: without it, the child would have its parent close
 * descriptors of the same numbers. Idempotent. */
void closer_forget(void);
