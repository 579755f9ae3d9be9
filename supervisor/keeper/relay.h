/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Passes the supervisor's sd_notify(3) texts on to the service manager, which listens to its main
 * process only, and that is the keeper. One text at a time is held back while the manager is busy;
 * the rest waits in the socket, and once that is full the supervisor's own retry takes over.
 */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define RELAY_TEXT_MAX 4096

struct relay {
    int from; /* datagrams of the supervisor; -1 = nothing to do */
    int to;   /* each text names its address: a restarted manager binds its socket anew */
    struct sockaddr_un address;
    socklen_t address_size;
    bool connected; /* `to`, to the socket that had no room: poll() tells when it has */
    size_t held;    /* bytes of `text` that the manager has not taken yet */
    char text[RELAY_TEXT_MAX];
};

/*
 * Returns the descriptor to which the supervisor writes (close-on-exec, the caller's). -ENOENT if
 * $NOTIFY_SOCKET names no manager, -EAFNOSUPPORT or -ENAMETOOLONG if it names one in a way that is
 * not supported, or -errno. After an error relay_run() does nothing.
 */
int relay_open(struct relay *relay);
/* Without blocking: passes on what there is. */
void relay_run(struct relay *relay);
/* What to wait for before the next relay_run(), */
struct pollfd relay_wait(const struct relay *relay);
/* and for how long at most: milliseconds, -1 = forever. */
int relay_wait_ms(const struct relay *relay);
