/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The calling side of Varlink over a Unix stream socket: JSON objects, each ended by a NUL.
 * https://varlink.org
 */

#include "shared/base/clock.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Larger requests are refused by the supervisor. */
#define VARLINK_CLIENT_REQUEST_MAX ((size_t)1 << 20)
/* A reply beyond this is taken for nonsense. */
#define VARLINK_CLIENT_REPLY_MAX ((size_t)256 << 20)

struct varlink_client {
    int fd;
    usec_t timeout; /* for each reply; USEC_INFINITY = none */
    char *buffer;
    size_t start, end, allocated; /* received and not yet read: start … end */
    size_t searched;              /* no NUL before this */
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

/* 0, or -errno of socket(2) and connect(2); -ENAMETOOLONG. End it with varlink_client_deinit(). */
int varlink_client_init(struct varlink_client *client, const char *path, usec_t timeout);
void varlink_client_deinit(struct varlink_client *client);

/* Takes `parameters` (NULL = none) over. 0, -EMSGSIZE, -ENOMEM, -ETIMEDOUT, -EPIPE or other -errno.
 */
int varlink_client_send(struct varlink_client *client, const char *method, json_t *parameters,
                        bool more);

/*
 * The next reply: end it with varlink_reply_deinit(). -ECONNRESET when the other end is gone,
 * -ETIMEDOUT, -EPROTO for what is no reply, -EINTR when a signal came in, -ENOMEM.
 */
int varlink_client_receive(struct varlink_client *client, struct varlink_reply *ret);
void varlink_reply_deinit(struct varlink_reply *reply);
