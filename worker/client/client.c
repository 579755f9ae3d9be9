/* SPDX-License-Identifier: MIT */
#include "worker/client/client.h"

#include "shared/base/cleanup.h"
#include "worker/client/connect.h"
#include "worker/public.h"
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

_public_ int troupe_client_connect(struct troupe_client **ret, const char *socket_path)
{
    struct connection connection = CONNECTION_NULL;
    struct troupe_client *client;
    int r = connection_open(&connection, socket_path);

    if (r < 0)
        return r;
    client = calloc(1, sizeof(*client));
    r = client
            ? carrier_open(&client->carrier, &client_carrier, &connection.fds, connection.control)
            : -ENOMEM;
    if (r < 0) {
        free(client);
        connection_deinit(&connection);
        return r;
    }
    client->socket = connection.socket;
    memcpy(client->address, connection.address, sizeof(client->address));
    results_init(&client->results);
    actor_init(&client->actor, &client->carrier, client->address);
    *ret = client;
    return 0;
}

_public_ void troupe_client_free(struct troupe_client *client)
{
    if (!client)
        return;
    actor_deinit(&client->actor);
    results_deinit(&client->results);
    pending_deinit(&client->pending);
    carrier_deinit(&client->carrier);
    close_fd(client->socket);
    free(client);
}

_public_ void troupe_client_flush(struct troupe_client *client)
{
    carrier_flush(&client->carrier);
}

bool client_hung_up(struct troupe_client *client)
{
    char ignored[256];
    ssize_t n;

    do
        n = recv(client->socket, ignored, sizeof(ignored), MSG_DONTWAIT);
    while (n > 0);
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        client->carrier.over = true;
    return client->carrier.over;
}

/* Waits up to `timeout` for a wake-up, or until the control socket is readable. */
static int poll_both(struct troupe_client *client, usec_t timeout)
{
    struct pollfd pollers[] = {
        {.fd = client->carrier.channel.wait_fd, .events = POLLIN},
        {.fd = client->socket, .events = POLLIN},
        {.fd = client->carrier.channel.self_fd, .events = POLLIN},
    };
    struct timespec limit = usec_to_timespec(timeout);
    int r;

    r = ppoll(pollers, ELEMENTS(pollers), timeout == USEC_INFINITY ? NULL : &limit, NULL);
    if (r < 0)
        return -errno;
    if (pollers[1].revents != 0 && !ring_pending(&client->carrier.channel.in))
        (void)client_hung_up(client);
    return r == 0 ? -ETIMEDOUT : 0;
}

/*
 * Publishes and releases records, and arms the eventfd for new ones. Returns 0, 1 if there are
 * already some, or -EINTR if another thread woke this one.
 */
static int client_arm(struct troupe_client *client)
{
    bool woken;

    troupe_client_flush(client);
    channel_release(&client->carrier.channel);
    client->unreleased = 0;
    if (!channel_arm(&client->carrier.channel, &woken))
        return woken ? -EINTR : 1;
    if (!actor_control_changed(&client->actor))
        return 0;
    channel_end_sleep(&client->carrier.channel);
    return 1;
}

int client_sleep(struct troupe_client *client, usec_t timeout)
{
    int r;

    if (timeout > 0) {
        /* Also making the descriptor readable would cost both sides a system call. */
        channel_end_sleep(&client->carrier.channel);
        troupe_client_flush(client);
        if (channel_spin(&client->carrier.channel))
            return 0;
    }
    r = client_arm(client);
    if (r != 0)
        return r < 0 ? r : 0;
    r = poll_both(client, timeout);
    channel_end_sleep(&client->carrier.channel);
    return r;
}

_public_ int troupe_client_fd(struct troupe_client *client)
{
    return carrier_fd(&client->carrier, client->socket, EPOLLIN);
}

_public_ uint64_t troupe_client_timeout(const struct troupe_client *client)
{
    return client->actor.silence_at;
}

_public_ int troupe_client_process(struct troupe_client *client)
{
    struct channel *channel = &client->carrier.channel;
    int r;

    channel_end_sleep(channel);
    r = troupe_actor_turn(&client->actor, 0);
    if (r > 0 || !list_empty(&client->results.queue) || client->bereft)
        return 1;
    if (r < 0)
        return r;
    channel->wakeable = true;
    r = client_arm(client);
    channel->wakeable = false;
    return r != 0 || client->carrier.over;
}

_public_ void troupe_client_wake(struct troupe_client *client)
{
    channel_wake_self(&client->carrier.channel);
}
