/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/listener.h"

#include "shared/base/fault.h"
#include "supervisor/loop/taker.h"
#include "supervisor/loop/toll.h"
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#define ACCEPTS_PER_TURN 16
/* The pause in accepting when no descriptor or memory is left. */
#define ACCEPT_PAUSE (100 * USEC_PER_MSEC)

static uint64_t owner_of(int connection)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0
               ? taker_owner_of_user(peer.uid)
               : 0;
}

static void turn_away(struct loop *loop, int connection)
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

/* ---- accepting ---- */

static int accept_one(struct acceptor *acceptor)
{
    int fd, r = fault_inject("accept");

    if (r < 0)
        return r;
    fd = accept4(acceptor->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (acceptor->accepted(acceptor, fd) < 0)
        turn_away(acceptor->loop, fd);
    return 0;
}

static void on_pause_over(struct timer *timer, usec_t now)
{
    struct acceptor *acceptor = list_entry(timer, struct acceptor, pause);

    (void)loop_watch_events(acceptor->loop, &acceptor->watch, POLLIN);
}

/* Stops polling for a while: the socket stays ready, so each turn of the loop would try again. */
static void pause_accepting(struct acceptor *acceptor, int error)
{
    if (acceptor->paused)
        acceptor->paused(acceptor, error);
    timer_arm(loop_timers(acceptor->loop), &acceptor->pause,
              usec_add(loop_now(acceptor->loop), ACCEPT_PAUSE));
    (void)loop_watch_events(acceptor->loop, &acceptor->watch, 0);
}

static void on_connection(void *userdata, uint32_t events)
{
    struct acceptor *acceptor = userdata;

    for (unsigned i = 0; i < ACCEPTS_PER_TURN; i++) {
        int r = accept_one(acceptor);

        if (r == -EAGAIN)
            return;
        if (r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -ENOBUFS) {
            pause_accepting(acceptor, r);
            return;
        }
        /* Other errors concern one client, which is gone already. */
    }
}

int acceptor_start(struct acceptor *acceptor, int fd)
{
    acceptor->fd = fd;
    timer_init(&acceptor->pause, on_pause_over);
    return loop_watch_fd(acceptor->loop, &acceptor->watch, fd, POLLIN, on_connection, acceptor);
}

void acceptor_stop(struct acceptor *acceptor)
{
    loop_unwatch(acceptor->loop, &acceptor->watch);
    timer_disarm(loop_timers(acceptor->loop), &acceptor->pause);
}
