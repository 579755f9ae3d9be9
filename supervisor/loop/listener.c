/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/listener.h"

#include "supervisor/loop/loop.h"
#include "supervisor/loop/taker.h"
#include "supervisor/loop/toll.h"
#include <errno.h>
#include <sys/socket.h>

static uint64_t owner_of(int connection)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0
               ? taker_owner_of_user(peer.uid)
               : 0;
}

void listener_turn_away(struct loop *loop, int connection)
{
    const uint64_t owner = owner_of(connection);

    if (toll_bars(owner, loop_now(loop)))
        loop_close_elsewhere(loop, connection, owner);
    else
        loop_close_owned(loop, connection, owner);
}

static bool is_listening(int fd)
{
    int listens = 0;
    socklen_t size = sizeof(listens);

    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens;
}

void listener_end(int fd)
{
    int connection;

    if (!is_listening(fd) || shutdown(fd, SHUT_RDWR) < 0)
        return;
    while ((connection = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0 ||
           errno == EINTR) {
        if (connection < 0)
            continue;
        (void)shutdown(connection, SHUT_RDWR);
        taker_close_socket(connection, owner_of(connection));
    }
}
