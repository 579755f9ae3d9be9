/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Readiness notification, both ways: the supervisor telling its service manager, and services under
 * it telling the supervisor. The protocol is that of sd_notify(3).
 *
 * Why not sd_notify(): the manager listens to its main process, the keeper, which passes these
 * texts on; and it blocks while the manager's socket is full. Here a state that cannot be sent at
 * once is kept, the newest of each kind, and sent again by a timer.
 */

#include "shared/base/clock.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#define NOTIFY_STATUS_MAX 256 /* with the NUL; longer is cut */

struct notify {
    struct timer_queue *timers;
    int fd;              /* -1: nobody wants to know, and every call does nothing */
    unsigned pending;    /* states not yet sent; private bits */
    usec_t reloading_at; /* with RELOADING=1 */
    bool status_changed;
    char status[NOTIFY_STATUS_MAX];
    struct timer retry;
    struct timer watchdog;
    usec_t watchdog_interval; /* between two signs of life; 0 = not wanted */
};

/*
 * `fd` takes datagrams for the service manager, without blocking; -1 = there is none. It is taken
 * over, also on error. From $WATCHDOG_USEC: if the manager wants signs of life, they are sent from
 * now on, twice per interval, by a timer of `timers`: they stop when the loop stops. 0 or -errno.
 */
int notify_init(struct notify *notify, struct timer_queue *timers, usec_t now, int fd);
void notify_deinit(struct notify *notify);

/* Whether there is anybody to tell: without, nothing need be counted for a status line. */
bool notify_wanted(const struct notify *notify);
void notify_ready(struct notify *notify, usec_t now);
/* Also begins a reload for Type=notify-reload: it ends with notify_ready(). */
void notify_reloading(struct notify *notify, usec_t now);
void notify_stopping(struct notify *notify, usec_t now);
/* One line for `systemctl status`; the same text again is not sent. */
void notify_status(struct notify *notify, usec_t now, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What a service said in one datagram. */
struct notify_message {
    /* Of the sender, from the kernel. Any process of the same user can be one; it may be gone. */
    pid_t pid;
    int pidfd;        /* the same, during the call; -1: the kernel gives none (before Linux 6.5) */
    bool sender_gone; /* it had been reaped before the message was read */
    bool ready, reloading, stopping;
    bool watchdog;         /* a sign of life */
    bool watchdog_trigger; /* it asks to be treated as hung */
    const char *status; /* NULL = not said; any bytes but NUL and newline: escape before showing */
};

typedef void (*notify_server_fn)(void *userdata, const struct notify_message *message);

/* Whether the sender has not been reaped yet, and so `pid` still means it; true if nobody knows. */
bool notify_sender_is_there(const struct notify_message *message);

/*
 * A socket for one service, $NOTIFY_SOCKET in its environment. Others of the same user can send to
 * it as well: `fn` checks whose process the sender is.
 */
struct notify_server {
    struct loop *loop;
    struct loop_watch watch;
    int fd;
    char *path;
    uid_t owner;
    notify_server_fn fn;
    void *userdata;
};

/* clang-format off */
#define NOTIFY_SERVER_NULL {.fd = -1, .watch = LOOP_WATCH_NULL}
/* clang-format on */

/*
 * Binds `path` (what was there before is removed), mode 0600, owned by `owner`, the user of the
 * service ((uid_t)-1 = the supervisor's own). Datagrams of other users, root excepted, are ignored.
 * Descriptors that come with one are closed. 0, -ENAMETOOLONG, or -errno. `fn` may deinit the
 * server.
 */
int notify_server_init(struct notify_server *server, struct loop *loop, const char *path,
                       uid_t owner, notify_server_fn fn, void *userdata);

/* Reads what has been sent by now, before somebody is judged by it. Harmless on
 * NOTIFY_SERVER_NULL. */
void notify_server_catch_up(struct notify_server *server);

/* Leaves datagrams in the socket until it is released. 0 or -ENOMEM. */
int notify_server_hold(struct notify_server *server, bool hold);

/* Also removes the path. Harmless on NOTIFY_SERVER_NULL. */
void notify_server_deinit(struct notify_server *server);

/* The parser alone: `text` is changed (cut into lines) and must outlive `ret`. Leaves the
 * sender open. */
void notify_parse(struct notify_message *ret, char *text);
