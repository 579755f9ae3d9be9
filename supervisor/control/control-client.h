/* SPDX-License-Identifier: MIT */
#pragma once

/* The control socket and its clients, as control.c and control-client.c share them. */

#include "shared/base/list.h"
#include "supervisor/control/control-context.h"
#include "supervisor/loop/listener.h"
#include "supervisor/loop/work-queue.h"
#include "supervisor/process/submit-socket.h"
#include "supervisor/varlink/request.h"
#include <sys/types.h>

struct client {
    struct list link;
    struct control *control;
    struct connection connection;
    struct request request;
    struct submit_client submits; /* linked if it came over a worker's socket */
    struct task farewell;         /* reads what the client sent before it left */
    unsigned refused_at;          /* the bound that it exceeds, so its first call fails; 0 = none */
};

struct control {
    struct control_context *context;
    struct acceptor acceptor;
    struct work_queue work; /* requests, and replies in parts */
    struct accounts accounts;
    struct list clients;
    unsigned n_clients, n_refused;
    char *path;     /* NULL = unknown */
    bool owns_path; /* removes it at the end */
    dev_t device;
    ino_t inode;
};

#define client_of(pointer, member) list_entry(pointer, struct client, member)

/*
 * Makes a client of an accepted connection, in the control's list. Returns 0 (`fd` is the
 * client's), -EMFILE when the descriptors left are reserved, -EUSERS when there are too many
 * clients, or -errno. `socket` is the worker's over which it came, or NULL.
 */
int client_new(struct control *control, int fd, struct submit_socket *socket);
void client_free(struct client *client);

/* Makes a client of the connection and the rings of one that outlived a crash (HOLDING_CLIENT).
 * Takes over `held`, also on error. 0 or -errno. */
struct held;
int client_adopt(struct control *control, struct held *held);

/* Disconnects a client that may not change things any more. A client that gets this permission has
 * to connect again. */
void client_review(struct client *client);

/* Sends what waits in its rings, and fails an open call with the error `farewell`. */
void client_bid_farewell(struct client *client, const char *farewell);
/* Waits until the client's socket has taken everything, or until `end` (monotonic). */
void client_drain(struct client *client, usec_t end);
