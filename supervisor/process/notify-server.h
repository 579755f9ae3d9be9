/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Notification by services: $NOTIFY_SOCKET, through which they report that they are ready or alive,
 * by the protocol of sd_notify(3).
 */

#include "supervisor/loop/loop.h"
#include "supervisor/loop/taker.h"
#include <stdbool.h>
#include <sys/types.h>

/* The longest datagram, as with systemd. */
#define NOTIFY_MAX 4096

/* One datagram of a service. */
struct notify_message {
    /* The sender, from the kernel: any process that can reach the socket. It may be gone. */
    pid_t pid;
    int pidfd;        /* valid during the call; -1 = unknown (before Linux 6.5) */
    bool sender_gone; /* it was reaped before the message was read */
    bool ready;
    bool watchdog;         /* a sign of life */
    bool watchdog_trigger; /* it wants to be treated as hung */
    bool too_long;         /* longer than NOTIFY_MAX bytes; only the sender is set */
    usec_t extend;         /* how long it still needs to start or to stop; 0 = as configured */
    const char *status; /* NULL = none; any bytes except NUL and newline: escape before showing */
};

/* `message` NULL: nothing more is read, as descriptors in the socket do not close. */
typedef void (*notify_server_fn)(void *userdata, const struct notify_message *message);

/* Whether the sender has not been reaped, so that `pid` still means it; true if unknown. */
bool notify_sender_is_there(const struct notify_message *message);

/* Which users may send, besides root and the supervisor's user. */
struct notify_senders {
    uid_t owner;   /* (uid_t)-1 = no other user */
    bool any_user; /* the service may change its user */
};

/* The socket of one service. Other processes can send to it: `fn` checks the sender. */
struct notify_server {
    struct loop *loop;
    struct loop_watch watch;
    int fd;
    char *path;
    struct notify_senders senders;
    struct taker_receipt discarded; /* the datagram that the taker removes */
    bool held;
    bool blocked;       /* nothing more is read: descriptors in it do not close */
    uid_t blocker;      /* their sender, once `blocked` */
    unsigned n_ignored; /* messages of other processes; counted by the owner */
    notify_server_fn fn;
    void *userdata;
};

/* clang-format off */
#define NOTIFY_SERVER_NULL {.fd = -1, .watch = LOOP_WATCH_NULL}
/* clang-format on */

/*
 * Binds `path`, which is removed first, with mode 0600 and the given owner, or with mode 0666 for
 * any user. Ignores datagrams of other users. The taker closes descriptors in datagrams; if it
 * cannot, the server stops reading. `fn` may deinit the server. Returns 0, -ENAMETOOLONG, or
 * -errno.
 */
int notify_server_init(struct notify_server *server, struct loop *loop, const char *path,
                       const struct notify_senders *senders, notify_server_fn fn, void *userdata);

/* Continues an earlier supervisor's server with its socket, which is still bound to `path`. Takes
 * over `fd` only on success. Returns 0 or -errno. */
int notify_server_adopt(struct notify_server *server, struct loop *loop, int fd, const char *path,
                        const struct notify_senders *senders, notify_server_fn fn, void *userdata);

/* Reads everything that has been sent by now, before a decision that depends on it. Harmless on
 * NOTIFY_SERVER_NULL. */
void notify_server_catch_up(struct notify_server *server);

/* Continues with the same socket for the next process of the service: discards what was sent
 * before. Saves the time to bind another one. */
void notify_server_renew(struct notify_server *server);

/* While held, datagrams stay in the socket. 0 or -ENOMEM. */
int notify_server_hold(struct notify_server *server, bool hold);

/* Also removes the path. Harmless on NOTIFY_SERVER_NULL. */
void notify_server_deinit(struct notify_server *server);

/* The parser alone, which does not set the sender. `text` is cut into lines and must outlive `ret`.
 */
void notify_parse(struct notify_message *ret, char *text);
