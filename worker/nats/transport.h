/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The socket of the connection to NATS, read and written by the main loop instead of libnats' own
 * threads: libnats' writer waits for a millisecond before each write. All that one turn of the loop
 * sends leaves in one write.
 *
 * Without TLS only: libnats waits within SSL_read() and SSL_write() for the rest of a record, and
 * the loop must not.
 */

#include "shared/base/clock.h"
#include <nats/nats.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>

struct transport {
    int wake_fd;          /* an eventfd, rung when another thread changes what to wait for */
    pthread_t owner;      /* the thread of the main loop */
    pthread_mutex_t lock; /* taken by libnats' threads, too: not to be held while it is called */
    int fd;               /* guarded by `lock`; -1 = there is none now, or libnats uses threads */
    bool writing;         /* guarded by `lock`: libnats has something to write */
    bool is_new;          /* guarded by `lock`: no transport_send() has seen the socket yet */
    usec_t stalled_at;    /* when the socket took something last; 0 = nothing is left */
};

/* `wake_fd` is borrowed. */
void transport_init(struct transport *transport, int wake_fd);

/* Has a connection with these options use the transport, which must not move any more. Returns what
 * libnats says. */
natsStatus transport_set(struct transport *transport, natsOptions *options);

/* What to wait for. When it is readable, call natsConnection_ProcessReadEvent(). */
struct pollfd transport_poll(struct transport *transport);

/* Writes what libnats has to write, as far as possible without waiting; shuts the socket down once
 * it has taken nothing for two seconds. Returns when to call it again at the latest. */
usec_t transport_send(struct transport *transport, natsConnection *connection, usec_t now);

/* Ends the socket: libnats connects to the next server. */
void transport_end(struct transport *transport);

/* Waits until the server has read all and has closed its side, or until `deadline`. */
void transport_finish(struct transport *transport, natsConnection *connection, usec_t deadline);
