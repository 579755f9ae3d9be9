/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The calling side of Varlink over a Unix stream socket: JSON objects, each ended by a NUL.
 * https://varlink.org
 */

#include "shared/base/reader.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Larger requests are refused by the supervisor. */
#define VARLINK_CLIENT_REQUEST_MAX ((size_t)1 << 20)
/* A payload of this size always fits into a request: JSON takes six characters per byte at most. */
#define VARLINK_CLIENT_PAYLOAD_MAX (VARLINK_CLIENT_REQUEST_MAX / 8)
/* Larger replies are rejected. */
#define VARLINK_CLIENT_REPLY_MAX ((size_t)256 << 20)

struct varlink_client {
    int fd;
    usec_t timeout; /* for each reply; USEC_INFINITY = none */
    struct reader reader;
};

struct varlink_reply {
    json_t *parameters; /* owned; an object, never NULL after success */
    char *error;        /* owned; the error's full name, or NULL */
    bool continues;
};

/* clang-format off */
#define VARLINK_CLIENT_NULL {.fd = -1}
#define VARLINK_REPLY_NULL {0}
/* clang-format on */

/*
 * With the time-out 0, for a program with an event loop, nothing waits: connecting fails with
 * -EAGAIN while the supervisor has too many connections to accept, sending with -ETIMEDOUT when the
 * request does not fit into the socket's buffer, and receiving with -ETIMEDOUT as long as the reply
 * is not complete. Returns 0 or an error of stream_connect(). Release it with
 * varlink_client_deinit().
 */
int varlink_client_init(struct varlink_client *client, const char *path, usec_t timeout);
void varlink_client_deinit(struct varlink_client *client);

/*
 * Takes ownership of `parameters`. Returns 0, -EMSGSIZE, -ENOMEM, -ETIMEDOUT, -EPIPE or another
 * -errno.
 */
int varlink_client_send(struct varlink_client *client, const char *method, json_t *parameters,
                        bool more);

/*
 * Receives the next reply; release it with varlink_reply_deinit(). Returns -ECONNRESET if the
 * connection was closed, -ETIMEDOUT, -EPROTO for an invalid reply, -ENOMEM, or another -errno.
 */
int varlink_client_receive(struct varlink_client *client, struct varlink_reply *ret);
void varlink_reply_deinit(struct varlink_reply *reply);

/* Whether it is the error of that full name. */
bool varlink_reply_is(const struct varlink_reply *reply, const char *error);
