/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Relays the supervisor's sd_notify(3) texts to the service manager, which accepts them only from
 * its main process, the keeper. While the manager is busy the texts wait in the socket; when that
 * is full, the supervisor's own retry takes over.
 */

#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define RELAY_TEXT_MAX 4096

struct relay {
    int from; /* receives the supervisor's texts; -1 = no manager */
    int to;   /* not connected: a restarted manager binds its socket again */
    struct sockaddr_un address;
    socklen_t address_size;
    size_t size; /* of the text that waits for room in the manager's socket; 0 = none */
    char text[RELAY_TEXT_MAX];
};

/*
 * Returns the descriptor to which the supervisor writes (close-on-exec, the caller's). -ENOENT
 * without $NOTIFY_SOCKET, -EAFNOSUPPORT or -ENAMETOOLONG if its address is not supported, or
 * -errno. After an error relay_run() does nothing.
 */
int relay_open(struct relay *relay);
/* Relays what there is, without blocking. */
void relay_run(struct relay *relay);
/* Tells the manager what the keeper itself has to say, unless the manager is busy. */
void relay_tell(struct relay *relay, const char *text);
/* Returns what to poll before the next relay_run(). */
struct pollfd relay_wait(const struct relay *relay);
/* Returns for how long to poll at most: milliseconds, -1 = forever. */
int relay_wait_ms(const struct relay *relay);
