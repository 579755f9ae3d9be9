/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The socket of the connection to NATS, read and written by the main loop instead of libnats' own
 * threads: libnats' writer waits for a millisecond before each write. Everything that a turn of the
 * loop sends leaves in one write.
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
    pthread_mutex_t lock; /* libnats' threads also take it: do not hold it while calling libnats */
    int fd;               /* guarded by `lock`; -1 = none, or libnats' threads have it */
    bool writing;         /* guarded by `lock`: libnats has something to write */
    bool is_new;          /* guarded by `lock`: transport_send() has not seen the socket yet */
    usec_t stalled_at;    /* when the socket accepted data last; 0 = none waits */
};

/* `wake_fd` is borrowed. */
void transport_init(struct transport *transport, int wake_fd);

/* Makes a connection with these options use the transport, which must not move afterwards. Returns
 * libnats' status. */
natsStatus transport_set(struct transport *transport, natsOptions *options);

/* Returns what to wait for. When it is readable, call natsConnection_ProcessReadEvent(). */
struct pollfd transport_poll(struct transport *transport);

/* Writes libnats' data as far as possible without waiting. Shuts the socket down if it has accepted
 * nothing for two seconds. Returns when to call it again at the latest. */
usec_t transport_send(struct transport *transport, natsConnection *connection, usec_t now);

/* Shuts the socket down, so libnats connects to the next server. */
void transport_end(struct transport *transport);
