/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The socket over which one worker creates jobs in the groups of its MaySubmit=. It has no path
 * that others could open: the worker inherits a descriptor of it (O_PATH), and connects to
 * /proc/self/fd/NUMBER. Whoever connects has the right of the worker, as it had the descriptor from
 * the worker; the socket and its connections end with the worker. The keeper holds it, so it
 * outlives a crash and an upgrade of the supervisor; its connections do not.
 */

#include "shared/base/list.h"
#include "supervisor/loop/listener.h"
#include "supervisor/process/holding.h"
#include <stdbool.h>

struct job;
struct submit_socket;

/* A connection. Embedded in its owner, who links it to the socket, and unlinks it at its end. */
struct submit_client {
    struct list link;
    void (*end)(struct submit_client *client); /* the worker is dead; unlinks it */
};

/* Who serves the connections. */
struct submit_server {
    /* Like acceptor.accepted. NULL = there is no control socket. */
    int (*accept)(void *userdata, struct submit_socket *socket, int fd);
    void *userdata;
};

struct submit_socket_options {
    struct loop *loop;
    struct spawner *spawner;
    const struct submit_server *server;
    const char *group; /* the worker's; outlives the socket */
    /* Whether the worker has a job in hand that has waited for this one. */
    bool (*needs)(void *userdata, const struct job *job);
    void *userdata;
};

struct submit_socket {
    struct submit_socket_options options;
    struct acceptor acceptor;
    struct list clients; /* struct submit_client.link */
    struct spawner_client keeper;
    struct holding holding;
};

/* Makes the socket. `*ret_fd` is for the worker; the caller closes it. The socket's name exists for
 * the moment of the call, in a directory in `directory` that other users cannot enter. Returns 0 or
 * -errno. */
int submit_socket_new(struct submit_socket **ret, const struct submit_socket_options *options,
                      const char *directory, int *ret_fd);

/* Continues a worker's of the last supervisor. Returns 0, with NULL if there is none, or -errno. */
int submit_socket_adopt(struct submit_socket **ret, const struct submit_socket_options *options,
                        struct held_table *table, const char *name);

/* Has the keeper hold it for the next supervisor under the worker's name. Returns 0 or -errno. */
int submit_socket_hold(struct submit_socket *socket, const char *name);

/* Ends the connections. Returns NULL; does nothing with NULL. */
struct submit_socket *submit_socket_free(struct submit_socket *socket);
