/* SPDX-License-Identifier: MIT */
#pragma once

/* Accepts connections, and closes those of clients that are not served. Descriptors may be queued
 * in them, and those of connections that are never accepted are closed with the listening socket:
 * such a close may block (taker.h), in whichever process closes that socket last. */

#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"

struct acceptor {
    struct loop *loop;
    int fd; /* the owner's */
    struct loop_watch watch;
    struct timer pause;
    /* Takes a connection over. Returns 0 or -errno: it is closed. */
    int (*accepted)(struct acceptor *acceptor, int connection);
    /* No descriptor or memory is left: the next connections wait for a moment. NULL allowed. */
    void (*paused)(struct acceptor *acceptor, int error);
};

/* Accepts from `fd`; the other members are set by the owner. Returns 0 or -errno. */
int acceptor_start(struct acceptor *acceptor, int fd);
void acceptor_stop(struct acceptor *acceptor);

/* If this is a listening socket, refuses further connections, and closes those that wait to be
 * accepted. The caller closes the socket. */
void listener_end(int fd);
