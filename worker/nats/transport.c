/* SPDX-License-Identifier: MIT */
#include "worker/nats/transport.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#define WRITE_USEC (2 * USEC_PER_SEC)

void transport_init(struct transport *transport, int wake_fd)
{
    *transport = (struct transport){
        .wake_fd = wake_fd, .owner = pthread_self(), .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};
}

/* ---- called by libnats on any thread, with its connection locked ---- */

static void change(struct transport *transport, int fd)
{
    pthread_mutex_lock(&transport->lock);
    transport->fd = fd;
    transport->writing = false;
    transport->is_new = true;
    pthread_mutex_unlock(&transport->lock);
}

static void wake(const struct transport *transport)
{
    if (!pthread_equal(pthread_self(), transport->owner))
        (void)eventfd_write(transport->wake_fd, 1);
}

static natsStatus on_attach(void **userdata, void *loop, natsConnection *connection, natsSock fd)
{
    *userdata = loop;
    change(loop, fd);
    wake(loop);
    return NATS_OK;
}

/* libnats only ever removes: on_attach() has added. The descriptor is closed afterwards. */
static natsStatus on_read(void *userdata, bool add)
{
    if (!add)
        change(userdata, -1);
    return NATS_OK;
}

static natsStatus on_write(void *userdata, bool add)
{
    struct transport *transport = userdata;

    pthread_mutex_lock(&transport->lock);
    transport->writing = add && transport->fd >= 0;
    pthread_mutex_unlock(&transport->lock);
    if (add)
        wake(transport);
    return NATS_OK;
}

static natsStatus on_detach(void *userdata)
{
    change(userdata, -1);
    return NATS_OK;
}

/* ---- on the main loop ---- */

natsStatus transport_set(struct transport *transport, natsOptions *options)
{
    natsStatus s =
        natsOptions_SetEventLoop(options, transport, on_attach, on_read, on_write, on_detach);

    /* Otherwise libnats' writer would decide when on_write() is called. */
    return s == NATS_OK ? natsOptions_SetSendAsap(options, true) : s;
}

struct pollfd transport_poll(struct transport *transport)
{
    struct pollfd poll_fd;

    pthread_mutex_lock(&transport->lock);
    poll_fd = (struct pollfd){.fd = transport->fd,
                              .events = (short)(POLLIN | (transport->writing ? POLLOUT : 0))};
    pthread_mutex_unlock(&transport->lock);
    return poll_fd;
}

/* Returns whether libnats has something to write. A new socket has time of its own. */
static bool is_writing(struct transport *transport)
{
    bool writing;

    pthread_mutex_lock(&transport->lock);
    writing = transport->writing;
    if (transport->is_new || !writing)
        transport->stalled_at = 0;
    transport->is_new = false;
    pthread_mutex_unlock(&transport->lock);
    return writing;
}

/* libnats closes the descriptor only after on_read() has taken it away. */
void transport_end(struct transport *transport)
{
    pthread_mutex_lock(&transport->lock);
    if (transport->fd >= 0)
        (void)shutdown(transport->fd, SHUT_RDWR);
    pthread_mutex_unlock(&transport->lock);
}

usec_t transport_send(struct transport *transport, natsConnection *connection, usec_t now)
{
    int left;

    if (!is_writing(transport))
        return USEC_INFINITY;
    left = natsConnection_Buffered(connection);
    natsConnection_ProcessWriteEvent(connection);
    if (!is_writing(transport))
        return USEC_INFINITY;
    if (transport->stalled_at == 0 || natsConnection_Buffered(connection) < left)
        transport->stalled_at = now;
    else if (now - transport->stalled_at >= WRITE_USEC)
        transport_end(transport); /* reading tells libnats */
    return transport->stalled_at + WRITE_USEC;
}
