/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The control socket: it accepts clients, finds the method of each call, checks permission, and
 * counts. Protocol and methods are documented in troupe-varlink(7).
 */

#include "supervisor/varlink/request.h"

struct control_context;
struct control;

/*
 * Makes the socket at `path`: refuses when somebody alive answers there (-EADDRINUSE), takes the
 * path of a dead one over, leaves anything else that is in the way alone (-EEXIST). A lock file
 * beside it, there for the duration of this call, keeps two starters apart. Mode 0666: the
 * directory decides who may look. Returns the descriptor, or -errno after a log line that says what
 * is wrong.
 */
int control_listen(const char *path);

/* Takes a listening socket over on success and begins to accept. 0 or -errno. */
int control_new(struct control **ret, struct control_context *context, int listen_fd);

/* The socket's path is ours, not the service manager's: it is removed in the end. */
void control_own_path(struct control *control, const char *path);

/* After AdminGroup= may have changed: every client's rights are looked at again. */
void control_review_clients(struct control *control);

/*
 * At shutdown, when the loop does not run any more: stops accepting, answers who still waits with
 * "Stopping", and gives clients a second at most to read what they are owed.
 */
void control_drain(struct control *control);

void control_free(struct control *control); /* NULL allowed */

/* Clients connected now, without those that were refused. */
unsigned control_n_clients(const struct control *control);
