/* SPDX-License-Identifier: MIT */
#include "worker/client/connect.h"

#include "shared/base/cleanup.h"
#include "shared/base/json-text.h"
#include "shared/base/scm.h"
#include "shared/base/stream.h"
#include "shared/protocol/payload-wire.h"
#include "shared/protocol/sentence.h"
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define TIMEOUT                                                                                    \
    (90 * USEC_PER_SEC) /* with socket activation the supervisor may first have to start */
#define REPLY_MAX       4096
#define DESCRIPTORS_MAX 5

/* The part of a Varlink message that has arrived; the message ends with a NUL byte. */
struct reply {
    char text[REPLY_MAX];
    size_t size;
    int fds[DESCRIPTORS_MAX];
    size_t n_fds;
};

static void reply_deinit(struct reply *reply)
{
    for (size_t i = 0; i < reply->n_fds; i++)
        close_fd(reply->fds[i]);
    reply->n_fds = 0;
}

static int send_call(int socket)
{
    char call[128];
    int size = snprintf(call, sizeof(call),
                        "{\"method\":\"io.troupe.Jobs.Attach\",\"parameters\":{\"version\":%d}}",
                        MEMORY_VERSION);

    return stream_send(socket, call, (size_t)size + 1);
}

static int receive_piece(int socket, struct reply *reply)
{
    union scm_control control;
    struct iovec data = {.iov_base = reply->text + reply->size,
                         .iov_len = sizeof(reply->text) - reply->size};
    struct msghdr message = SCM_MESSAGE(&data, &control);
    const size_t room = DESCRIPTORS_MAX - reply->n_fds;
    size_t n_fds;
    ssize_t n;

    if (data.iov_len == 0)
        return -EPROTO;
    n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR)
        return 0;
    if (n < 0)
        return errno == EAGAIN ? -ETIMEDOUT : -errno;
    n_fds = scm_take(&message, reply->fds + reply->n_fds, room, payload_drop_fd);
    reply->n_fds += n_fds < room ? n_fds : room;
    if (n_fds > room || (message.msg_flags & MSG_CTRUNC))
        return -EPROTO;
    reply->size += (size_t)n;
    return n == 0 ? -ECONNRESET : 0;
}

static int receive_reply(int socket, struct reply *reply)
{
    while (!memchr(reply->text, '\0', reply->size)) {
        int r = receive_piece(socket, reply);

        if (r < 0)
            return r;
    }
    return 0;
}

/* Copies a string of the reply by its path; "" if there is none. */
static void read_string(const struct reply *reply, const char *path, char ret[REPLY_MAX])
{
    const char *value = json_text_member(reply->text, path);

    if (!value || json_text_string(value, ret) < 0)
        *ret = '\0';
}

/* Returns the -errno of the error in the reply; -EPROTO without a known error. */
static int reply_error(const struct reply *reply)
{
    char error[REPLY_MAX];

    read_string(reply, "error", error);
    return sentence_error(error);
}

static void take_descriptors(struct connection *connection, struct reply *reply)
{
    connection->fds.inbox = reply->fds[0];
    connection->fds.outbox = reply->fds[1];
    connection->control = reply->fds[2];
    connection->fds.wait_fd = reply->fds[3];
    if (reply->n_fds == DESCRIPTORS_MAX)
        connection->fds.wake_fd = reply->fds[4];
    reply->n_fds = 0;
}

/* Without it the client has no address. */
static void take_address(struct connection *connection, const struct reply *reply)
{
    char address[REPLY_MAX];

    read_string(reply, "parameters.address", address);
    if (strlen(address) < sizeof(connection->address))
        strcpy(connection->address, address);
}

const char *connection_path(const char *path)
{
    if (!path)
        path = secure_getenv("TROUPE_SOCKET");
    return path && *path ? path : CONNECTION_USUAL_PATH;
}

int connection_socket(const char *path)
{
    return stream_connect(connection_path(path), TIMEOUT);
}

int connection_open(struct connection *ret, const char *path)
{
    _cleanup_(reply_deinit)
    struct reply reply = {.size = 0};
    struct connection connection = CONNECTION_NULL;
    _cleanup_close_ int fd = -1;
    int r;

    fd = connection_socket(path);
    if (fd < 0)
        return fd;
    r = send_call(fd);
    /* A supervisor that refuses immediately has sent its reason and closed the socket. */
    if (r == 0 || r == -EPIPE)
        r = receive_reply(fd, &reply);
    if (r < 0)
        return r == -EPIPE ? -ECONNRESET : r;
    if (reply.n_fds != DESCRIPTORS_MAX - 1 && reply.n_fds != DESCRIPTORS_MAX) {
        r = reply_error(&reply);
        return r == -ENOMEM ? -EAGAIN : r; /* the supervisor's memory, not ours */
    }
    take_descriptors(&connection, &reply);
    take_address(&connection, &reply);
    connection.socket = TAKE_FD(fd);
    *ret = connection;
    return 0;
}

void connection_deinit(struct connection *connection)
{
    close_fd(connection->fds.inbox);
    close_fd(connection->fds.outbox);
    close_fd(connection->fds.wait_fd);
    close_fd(connection->fds.wake_fd);
    close_fd(connection->control);
    close_fd(connection->socket);
    *connection = (struct connection)CONNECTION_NULL;
}
