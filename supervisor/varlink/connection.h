/* SPDX-License-Identifier: MIT */
#pragma once

/* One client's stream socket. It reads NUL-terminated messages, one at a time, and queues replies.
 * Everything is bounded; in a turn a client gets one read of 64 KiB and one message.
 *
 * Nothing is read while a message is being answered or its reply has not been read by the client.
 * A client that does not read the replies of a call with "more" is closed when
 * CONNECTION_OUTPUT_MAX bytes are queued. */

#include "shared/base/clock.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include "supervisor/loop/toll.h"
#include "supervisor/loop/work-queue.h"
#include "supervisor/varlink/account.h"
#include "supervisor/varlink/peer.h"
#include "supervisor/varlink/varlink.h"
#include <stdbool.h>
#include <stddef.h>

#define CONNECTION_INPUT_MAX VARLINK_MESSAGE_MAX
/* The limit for a client without permission to change things, which needs no large messages. */
#define CONNECTION_STRANGER_INPUT_MAX ((size_t)64 << 10)
#define CONNECTION_OUTPUT_MAX         ((size_t)4 << 20) /* not yet read by the client */
/* A client that is being closed may pause for so long while it reads the rest, and may still send
 * so many bytes. */
#define CONNECTION_LINGER     (2 * USEC_PER_SEC)
#define CONNECTION_LINGER_MAX CONNECTION_INPUT_MAX

struct connection;

struct connection_handler {
    /* One message; `text` is valid during the call. Ends with connection_next(), now or later. */
    void (*message)(struct connection *connection, const char *text, size_t size);
    /* A message is larger than connection_input_max(). The handler may reply; then the connection
     * finishes. */
    void (*too_large)(struct connection *connection);
    /* The client is disconnected for this reason; closed() follows. For the log. */
    void (*cut_off)(struct connection *connection, const char *why);
    /* Everything that was queued has been sent, and a message is still being answered. */
    void (*sent)(struct connection *connection);
    /* The connection has ended: deinitialise and free it. Called once, at the end of a turn. */
    void (*closed)(struct connection *connection);
};

struct connection {
    struct loop *loop;
    const struct connection_handler *handler;
    int fd;
    struct loop_watch watch;
    struct work_queue *work;
    struct task task;           /* handles the next message */
    struct loop_deferred again; /* the next message has arrived: handled in the next turn */
    struct loop_deferred closing;
    struct timer timer; /* idle, or lingering */
    struct peer peer;
    struct account *account;
    struct list place;  /* among those of its user; unlinked = it does not count */
    bool attached;      /* uses shared memory, so it always counts as at work */
    usec_t idle_max;    /* closed when the client is silent for so long; USEC_INFINITY = never */
    usec_t active_at;   /* monotonic */
    usec_t request_max; /* closed when a message takes longer to arrive */
    usec_t begun_at;    /* when an incomplete message began; 0 = there is none */
    char *in;
    size_t in_start, in_end, in_allocated;
    size_t in_scanned; /* no NUL before this one */
    char *out;
    size_t out_start, out_end, out_allocated;
    size_t n_discarded;
    bool takes_no_descriptors; /* the kernel refuses them */
    bool busy;                 /* a message is being answered or waits for its turn */
    bool eof;                  /* the client sends no more */
    bool finishing;            /* the last answer is queued */
    bool shut;                 /* the last answer is sent */
    bool costly;               /* each system call with its socket takes long */
    bool dead;                 /* only closed() follows */
    bool leaving;              /* account_left() is due */
};

struct connection_options {
    struct work_queue *work;   /* shared by all connections */
    struct accounts *accounts; /* likewise */
    bool may_change;           /* the peer has permission to change things */
    bool counts;               /* takes one of its user's places */
    usec_t idle_max, request_max;
    const struct connection_handler *handler;
};

/* Takes `fd` (non-blocking) and the peer over on success. 0 or -errno. */
int connection_init(struct connection *connection, int fd, struct peer *peer,
                    const struct connection_options *options);
/* Call only from closed(), or after the loop has ended. */
void connection_deinit(struct connection *connection);

/* Sends, or queues what the socket does not take; an answer with descriptors is not queued. Returns
 * 0, -ENOMEM, or -ETOOMANYREFS (too many of this user's descriptors are in flight). Returns 0 also
 * when the socket is broken or takes no descriptors, more than CONNECTION_OUTPUT_MAX is unread, or
 * the client's user has too much unread: then closed() follows. */
int connection_send(struct connection *connection, const void *data, size_t size, const int *fds,
                    unsigned n_fds);

/* Sends now what would otherwise be sent by the loop. */
void connection_flush(struct connection *connection);

/* The current message has been answered. */
void connection_next(struct connection *connection);

/* Reads no more messages. Closes when the client has read the rest, or pauses for too long. */
void connection_finish(struct connection *connection);

/* Closes at the end of this turn. */
void connection_close(struct connection *connection);

/* Marks that the client uses shared memory from now on: the connection is never idle again. */
void connection_attach(struct connection *connection);

/* The largest message, in bytes. */
size_t connection_input_max(const struct connection *connection);

/* Bytes queued for the client, without those in the kernel's buffer. */
size_t connection_unread(const struct connection *connection);

/* ---- between connection.c and connection-output.c ---- */

/* Ends the connection if the calls since toll_begin() took too long. */
void connection_charge(struct connection *connection, struct toll toll);
/* Sets what the loop waits for by the state of the connection. */
void connection_update(struct connection *connection);
void connection_free_out(struct connection *connection);
