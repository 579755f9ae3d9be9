/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The control socket: it accepts clients, finds the method of each call, checks permission, and
 * counts. Protocol and methods are documented in troupe-varlink(7).
 */

#include "supervisor/varlink/request.h"

struct control_context;
struct control;
struct held_table;

/* How long a starting supervisor waits for the end of one that is being killed. A running loop must
 * not wait and passes 0. */
#define CONTROL_PATIENCE_MS 1000

/*
 * Locks a file beside the socket's path, so that no other supervisor uses the path as long as
 * `*lock` (-1 = none, owned by the caller) is open in any process, even if the socket is removed.
 * Keeps `*lock` if it still is that lock; replaces it if its file was removed. Returns 0,
 * -EADDRINUSE if another process still has the lock after `patience_ms`, or -errno. Logs all
 * errors.
 */
int control_lock(const char *path, int *lock, int patience_ms);
/* Has inotify(7) report when the socket's file or the lock's is removed or renamed. */
void control_watch_files(const char *path, int inotify);
/* Removes the file if `lock` is its lock, and closes the lock; -1 = none. */
void control_unlock(const char *path, int lock);

/*
 * Makes the socket at `path` with mode 0666 (the directory restricts access). Fails with
 * -EADDRINUSE if a supervisor listens there that does not end within `patience_ms`, replaces the
 * socket of a dead one, and with -EEXIST leaves any other file alone. The caller must hold
 * control_lock(). Returns the descriptor, which the caller owns, or, after a log line, -errno.
 */
int control_listen(const char *path, int patience_ms);

/* Continues with the socket of a supervisor that has died: from now on its clients see the
 * credentials of this process. Returns 0 or -errno. */
int control_listen_again(int fd);

/* Takes over a listening socket on success and begins to accept. Returns 0 or -errno. */
int control_new(struct control **ret, struct control_context *context, int listen_fd);

/* Sets the socket's path; `is_own`: not the service manager's, so control_free() removes it. */
void control_set_path(struct control *control, const char *path, bool is_own);

/* Returns the listening socket, borrowed. */
int control_fd(const struct control *control);
/* Returns whether the path still leads to the socket. */
bool control_has_path(const struct control *control);
/* Serves another listening socket instead, and takes it over even on error. Returns 0, or -ENOMEM
 * and then serves none. */
int control_replace(struct control *control, int listen_fd);

/* Continues with the ring clients of the former supervisor. */
void control_adopt_clients(struct control *control, struct held_table *held);

/* Disconnects clients that may not change things any more, after a change of AdminGroup=. */
void control_review_clients(struct control *control);

/*
 * For the shutdown, after the loop has ended: stops accepting, replies "Stopping" to open calls,
 * or "Restarting" if another supervisor takes over, and gives clients up to a second to read their
 * replies.
 */
void control_drain(struct control *control, bool restarting);

void control_free(struct control *control); /* NULL allowed */

/* Clients connected now, without those that were refused. */
unsigned control_n_clients(const struct control *control);
