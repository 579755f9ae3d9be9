/* SPDX-License-Identifier: MIT */
/* Lets a worker or a client be part of a program's own event loop, and be woken by its threads. */
#include "shared/base/cleanup.h"
#include "worker/client/client.h"
#include "worker/public.h"
#include "worker/worker/worker.h"
#include <sys/epoll.h>

static int add(int epoll, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events};

    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/*
 * One descriptor for the eventfd and the end of `socket`. It is readable from the start: only
 * processing shows that there is nothing yet.
 */
static int open_poll_fd(struct channel *channel, int socket, uint32_t socket_events, int *poll_fd)
{
    _cleanup_close_ int fd = -1;
    int r;

    if (*poll_fd >= 0)
        return *poll_fd;
    fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = add(fd, channel->wait_fd, EPOLLIN);
    if (r == 0)
        r = add(fd, socket, socket_events);
    if (r < 0)
        return r;
    channel_ring_self(channel);
    return *poll_fd = TAKE_FD(fd);
}

/* ---- workers ---- */

_public_ int troupe_worker_fd(struct troupe_worker *worker)
{
    return open_poll_fd(&worker->channel, worker->control, 0, &worker->poll_fd);
}

_public_ uint64_t troupe_worker_timeout(const struct troupe_worker *worker)
{
    return worker->actor.silence_at;
}

_public_ int troupe_worker_process(struct troupe_worker *worker)
{
    bool woken;
    int r;

    channel_end_sleep(&worker->channel);
    r = troupe_worker_turn(worker, 0);
    if (r != 0)
        return r;
    worker->channel.wakeable = true;
    r = !channel_arm(&worker->channel, &woken);
    worker->channel.wakeable = false;
    if (r == 0 && !actor_control_changed(&worker->actor) && !worker_supervisor_gone(worker))
        return 0;
    channel_end_sleep(&worker->channel);
    return r == 0 && worker_supervisor_gone(worker) ? -ESHUTDOWN : 1;
}

_public_ void troupe_worker_wake(struct troupe_worker *worker)
{
    channel_wake_self(&worker->channel);
}

/* ---- clients ---- */

_public_ int troupe_client_fd(struct troupe_client *client)
{
    return open_poll_fd(&client->channel, client->socket, EPOLLIN, &client->poll_fd);
}

_public_ uint64_t troupe_client_timeout(const struct troupe_client *client)
{
    return client->actor.silence_at;
}

_public_ int troupe_client_process(struct troupe_client *client)
{
    int r;

    channel_end_sleep(&client->channel);
    r = troupe_actor_turn(&client->actor, 0);
    if (r > 0 || client->results.first)
        return 1;
    if (r < 0)
        return r;
    client->channel.wakeable = true;
    r = client_arm(client);
    client->channel.wakeable = false;
    return r != 0 || client->over;
}

_public_ void troupe_client_wake(struct troupe_client *client)
{
    channel_wake_self(&client->channel);
}
