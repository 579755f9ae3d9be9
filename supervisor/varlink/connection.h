/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One client's stream socket: NUL-terminated messages in, answered one after the other, and bytes
 * out. Everything is bounded, and a client's turn is one read of 64 KiB and one message.
 *
 * While a message is being answered, or its answer not yet read, nothing more is read: a client
 * that asks ahead is held up by its own socket. One that is told more than it reads ("more") is
 * closed at CONNECTION_OUTPUT_MAX.
 */

#include "shared/base/clock.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include "supervisor/loop/work-queue.h"
#include "supervisor/varlink/account.h"
#include "supervisor/varlink/peer.h"
#include "supervisor/varlink/varlink.h"
#include <stdbool.h>
#include <stddef.h>

#define CONNECTION_INPUT_MAX VARLINK_MESSAGE_MAX
/* The same from a client that may only look: no method that it may call takes so much. */
#define CONNECTION_STRANGER_INPUT_MAX ((size_t)64 << 10)
#define CONNECTION_OUTPUT_MAX         ((size_t)4 << 20) /* not yet read by the client */
#define CONNECTION_FDS_MAX            5
/* How long a client that is to be closed may take nothing of what it has left to read, and what it
 * may still send meanwhile. */
#define CONNECTION_LINGER     (2 * USEC_PER_SEC)
#define CONNECTION_LINGER_MAX CONNECTION_INPUT_MAX

struct connection;

struct connection_handler {
    /* One message; `text` is valid during the call. Ends with connection_next(), now or later. */
    void (*message)(struct connection *connection, const char *text, size_t size);
    /* A message beyond connection_input_max(): to be answered, if wanted; then the connection
     * finishes. */
    void (*too_large)(struct connection *connection);
    /* The client is cut off, closed() follows: for the log. */
    void (*cut_off)(struct connection *connection, const char *why);
    /* All that was queued is sent, while a message is being answered. */
    void (*sent)(struct connection *connection);
    /* It is over, for whatever reason: deinitialise and free it. Called at the end of a turn, once.
     */
    void (*closed)(struct connection *connection);
};

struct connection {
    struct loop *loop;
    const struct connection_handler *handler;
    int fd;
    struct loop_watch watch;
    struct work_queue *work;
    struct task task;           /* handles the next message */
    struct loop_deferred again; /* the next message is there already: in the next turn */
    struct loop_deferred closing;
    struct timer timer; /* idle, or lingering */
    struct peer peer;
    struct account *account;
    usec_t idle_max;    /* closed after so long without a byte from it; USEC_INFINITY = never */
    usec_t active_at;   /* monotonic */
    usec_t request_max; /* closed when a message has not come whole so long after it began */
    usec_t begun_at;    /* since when the rest of a message is waited for; 0 = it is not */
    char *in;
    size_t in_start, in_end, in_allocated;
    size_t in_scanned; /* no NUL before this one */
    char *out;
    size_t out_start, out_end, out_allocated;
    int fds[CONNECTION_FDS_MAX];
    unsigned n_fds;
    size_t fds_at; /* they go with this byte of `out` */
    size_t n_discarded;
    bool takes_no_descriptors; /* the kernel refuses them */
    bool busy;                 /* a message is being answered, or waits for that */
    bool eof;                  /* the client sends no more */
    bool finishing;            /* last answer queued */
    bool shut;                 /* and sent */
    bool dead;                 /* only closed() is to come */
    bool overrun;              /* CONNECTION_OUTPUT_MAX was hit */
};

struct connection_options {
    struct work_queue *work;   /* shared by all connections */
    struct accounts *accounts; /* likewise */
    bool may_change;           /* whether the peer is more than a stranger */
    usec_t idle_max, request_max;
    const struct connection_handler *handler;
};

/* Takes `fd` (non-blocking) and the peer over on success. 0 or -errno. */
int connection_init(struct connection *connection, int fd, struct peer *peer,
                    const struct connection_options *options);
/* Only from closed(), or when the loop does not run any more. */
void connection_deinit(struct connection *connection);

enum {
    _CONNECTION_E_SUCCESS,
    CONNECTION_E_OVERRUN, /* more than CONNECTION_OUTPUT_MAX unread: not queued; a last word may be
                           */
};

/*
 * Sends, or queues what the socket does not take. Descriptors are duplicated; only once in a
 * connection's life. 0, CONNECTION_E_OVERRUN, -ENOMEM, -EMFILE,
 * -ETOOMANYREFS (too many of this user's are on their way). A socket that is broken is no error
 * here, nor a client whose user leaves too much unread: closed() follows.
 */
int connection_send(struct connection *connection, const void *data, size_t size, const int *fds,
                    unsigned n_fds);

/* Tries to send what is queued; otherwise the loop does so. */
void connection_flush(struct connection *connection);

/* The message in hand has been answered. */
void connection_next(struct connection *connection);

/* Reads no more messages; closed once the client has read the rest, at the latest after LINGER. */
void connection_finish(struct connection *connection);

/* Closed at the end of this turn. */
void connection_close(struct connection *connection);

/*
 * What the connection holds counts for another account of the same user from now on. Takes the
 * caller's reference; the old account may be freed, so nobody may borrow it any more.
 */
void connection_move(struct connection *connection, struct account *account);

/* Bytes that a message may have. */
size_t connection_input_max(const struct connection *connection);

/* Bytes the client has not read (apart from the kernel's buffer). */
size_t connection_unread(const struct connection *connection);

/* ---- between connection.c and connection-output.c ---- */

/* Waits for whatever is to come next, given how far things are. */
void connection_update(struct connection *connection);
void connection_drop_fds(struct connection *connection);
void connection_free_out(struct connection *connection);
