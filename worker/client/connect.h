/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How a client obtains its rings: one Varlink call over the supervisor's socket, answered with
 * descriptors. The socket stays open beside the rings: its end is the end of the connection.
 *
 * There is no JSON library here on purpose: workers link this library too, and each shared object
 * more makes every restart slower. What has to be understood is only which descriptors came, and
 * else which error.
 */

#include "shared/ring/channel.h"

#define CONNECTION_ADDRESS_SIZE 24

struct connection {
    int socket;
    int control;
    char address[CONNECTION_ADDRESS_SIZE]; /* the client's as an actor: "@3" */
    struct channel_fds fds;
};

/* clang-format off */
#define CONNECTION_NULL {.socket = -1, .control = -1, .fds = CHANNEL_FDS_NULL}
/* clang-format on */

/* A connected socket, or -errno as below. `path` as below. */
int connection_socket(const char *path);

/*
 * `path` NULL: $TROUPE_SOCKET, else the default. Errors as troupe_client_connect(). Waits for the
 * answer.
 */
int connection_open(struct connection *ret, const char *path);

/* Closes everything that has not been taken out. */
void connection_deinit(struct connection *connection);
