/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Serves HTTP with libmicrohttpd, in one thread: requests that wait for the supervisor are
 * suspended, and a page needs little computation, so threads would only add locks.
 */

#include "supervisor/web/options.h"
#include "supervisor/web/poller.h"
#include "supervisor/web/site.h"
#include "supervisor/web/visitor.h"

/* Bounds of each listening socket. */
#define SERVER_CONNECTIONS_MAX  128
#define SERVER_CONNECTIONS_EACH 96 /* from one address */

struct server {
    struct MHD_Daemon *daemons[OPTIONS_LISTEN_MAX]; /* one for each socket */
    size_t n;
    struct visitors visitors;
};

/* Takes over the sockets, even after an error. Prints errors. Returns 0 or -EIO. */
int server_init(struct server *server, struct site *site, const int *fds, int n_fds);

/* No connection may be suspended. */
void server_deinit(struct server *server);

/* Before and after the loop waits. */
void server_prepare(struct server *server, struct poller *poller);
void server_run(struct server *server, usec_t now);
