/* SPDX-License-Identifier: MIT */

/* Output of a connection: queues what the socket does not take immediately. */

#include "supervisor/varlink/connection.h"

#include "shared/base/cleanup.h"
#include "shared/base/scm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

size_t connection_unread(const struct connection *connection)
{
    return connection->out_end - connection->out_start;
}

/* Returns how much the socket has taken, or -errno. */
static ssize_t send_some(struct connection *connection, const void *data, size_t size,
                         const int *fds, unsigned n_fds)
{
    struct iovec vector = {.iov_base = (void *)data, .iov_len = size};
    const struct toll toll = toll_begin(loop_now(connection->loop));
    ssize_t n;

    n = scm_send(connection->fd, vector, fds, n_fds, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    connection_charge(connection, toll);
    return n;
}

void connection_free_out(struct connection *connection)
{
    connection->out_start = connection->out_end = 0;
    account_free(connection->account, ACCOUNT_ANSWERS, &connection->out,
                 &connection->out_allocated);
}

void connection_flush(struct connection *connection)
{
    ssize_t n;

    if (connection_unread(connection) > 0) {
        n = send_some(connection, connection->out + connection->out_start,
                      connection_unread(connection), NULL, 0);
        if (n < 0) {
            connection_close(connection);
            return;
        }
        connection->out_start += (size_t)n;
        if (n > 0)
            connection->active_at = loop_now(connection->loop);
    }
    if (connection_unread(connection) > 0 || connection->dead)
        return;
    connection_free_out(connection); /* an idle client holds no buffer */
    if (connection->finishing && !connection->shut) {
        const struct toll toll = toll_begin(loop_now(connection->loop));

        connection->shut = true;
        shutdown(connection->fd, SHUT_WR);
        connection_charge(connection, toll);
    }
    if (connection->finishing && connection->eof)
        connection_close(connection);
}

static int queue(struct connection *connection, const void *data, size_t size)
{
    size_t unread = connection_unread(connection), wanted;
    int r;

    if (connection->out_start > 0) {
        memmove(connection->out, connection->out + connection->out_start, unread);
        connection->out_start = 0;
        connection->out_end = unread;
    }
    if (unread + size > connection->out_allocated) {
        wanted = connection->out_allocated * 2;
        if (wanted < unread + size)
            wanted = unread + size;
        r = account_realloc(connection->account, ACCOUNT_ANSWERS, &connection->out,
                            &connection->out_allocated, wanted);
        if (r < 0)
            return r;
    }
    memcpy(connection->out + unread, data, size);
    connection->out_end = unread + size;
    return 0;
}

int connection_send(struct connection *connection, const void *data, size_t size, const int *fds,
                    unsigned n_fds)
{
    ssize_t n = 0;
    int r;

    if (connection->dead || connection->finishing)
        return 0;
    if (size > CONNECTION_OUTPUT_MAX - connection_unread(connection)) {
        connection->handler->cut_off(connection, "it does not read its answers");
        connection_close(connection);
        return 0;
    }
    if (connection_unread(connection) == 0) {
        n = send_some(connection, data, size, fds, n_fds);
        if (n == -ETOOMANYREFS)
            return (int)n;
        if (n < 0) {
            connection_close(connection);
            return 0;
        }
        connection->active_at = loop_now(connection->loop);
    }
    if (n == 0 && n_fds > 0) {
        connection->handler->cut_off(connection, "it has not read earlier answers");
        connection_close(connection);
        return 0;
    }
    if ((size_t)n < size) {
        r = queue(connection, (const char *)data + n, size - (size_t)n);
        if (r == -EDQUOT) {
            connection->handler->cut_off(connection, "answers that are not read take too much");
            connection_close(connection);
            return 0;
        }
        if (r < 0) {
            if (n > 0)
                connection_close(connection); /* half a reply was sent: nothing can follow */
            return r;
        }
    }
    connection_update(connection);
    return 0;
}
