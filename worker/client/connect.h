/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Obtains a client's rings by a Varlink call over the supervisor's socket, which is answered with
 * descriptors. The connection lasts as long as the socket.
 */

#include "shared/ring/channel.h"

#define CONNECTION_ADDRESS_SIZE 24

struct connection {
    int socket;
    int control;
    char address[CONNECTION_ADDRESS_SIZE]; /* the client's, as an actor: "@3" */
    struct channel_fds fds;
};

/* clang-format off */
#define CONNECTION_NULL {.socket = -1, .control = -1, .fds = CHANNEL_FDS_NULL}
/* clang-format on */

#define CONNECTION_USUAL_PATH "/run/troupe/troupe.sock"

/* Returns `path`; for NULL, $TROUPE_SOCKET if it is set, else the usual path. */
const char *connection_path(const char *path);

/* Connects to `path`, NULL: $TROUPE_SOCKET, else the default. Returns a socket, or -errno like
 * troupe_client_connect(). */
int connection_socket(const char *path);

/* Connects, and waits for the answer. Returns 0 or -errno like troupe_client_connect(). */
int connection_open(struct connection *ret, const char *path);

/* Closes all descriptors. */
void connection_deinit(struct connection *connection);
