/* SPDX-License-Identifier: MIT */
#include "worker/client/connect.h"

#include "shared/base/cleanup.h"
#include "shared/base/scm.h"
#include "shared/protocol/payload-wire.h"
#include "shared/protocol/sentence.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#define DEFAULT_PATH    "/run/troupe/troupe.sock"
#define TIMEOUT_SEC     90 /* by socket activation the supervisor may have to start first */
#define REPLY_MAX       4096
#define DESCRIPTORS_MAX 5

/* What arrived of a Varlink message, which ends with a NUL byte. */
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

/* Fills in the address of a socket. A path that is too long for an address is replaced by one
 * through /proc and the descriptor of its directory, which `*ret_directory` keeps open. */
static int make_address(const char *path, struct sockaddr_un *ret, int *ret_directory)
{
    const char *name = strrchr(path, '/');
    _cleanup_free_ char *directory = NULL;

    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) < sizeof(ret->sun_path)) {
        memcpy(ret->sun_path, path, strlen(path));
        return 0;
    }
    directory = name ? strndup(path, (size_t)(name + 1 - path)) : NULL;
    if (!directory)
        return name ? -ENOMEM : -ENAMETOOLONG;
    *ret_directory = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*ret_directory < 0)
        return -errno;
    return snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d%s", *ret_directory,
                    name) < (int)sizeof(ret->sun_path)
               ? 0
               : -ENAMETOOLONG;
}

static int open_socket(const char *path)
{
    struct timeval timeout = {.tv_sec = TIMEOUT_SEC};
    _cleanup_close_ int fd = -1, directory = -1;
    struct sockaddr_un address;
    int r = make_address(path, &address, &directory);

    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0)
        return -errno;
    while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        if (errno != EINTR)
            return errno == EAGAIN ? -ETIMEDOUT : -errno;
    return TAKE_FD(fd);
}

int connection_send(int socket, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = send(socket, text, size, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR)
            return errno == EAGAIN ? -ETIMEDOUT : -errno;
        if (n > 0) {
            text += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

static int send_call(int socket)
{
    char call[128];
    int size = snprintf(call, sizeof(call),
                        "{\"method\":\"io.troupe.Jobs.Attach\",\"parameters\":{\"version\":%d}}",
                        MEMORY_VERSION);

    return connection_send(socket, call, (size_t)size + 1);
}

static int receive_piece(int socket, struct reply *reply)
{
    union scm_control control;
    struct iovec data = {.iov_base = reply->text + reply->size,
                         .iov_len = sizeof(reply->text) - reply->size};
    struct msghdr message = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
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

/* Returns the -errno of the error in the reply; -EPROTO without a known error. Changes the text. */
static int reply_error(struct reply *reply)
{
    static const char KEY[] = "\"error\"";
    char *error = strstr(reply->text, KEY);

    if (!error)
        return -EPROTO;
    error += sizeof(KEY) - 1;
    error += strspn(error, " :");
    if (*error++ != '"')
        return -EPROTO;
    error[strcspn(error, "\"")] = '\0';
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

/* Reads the only string of the reply; without one the client has no address. */
static void take_address(struct connection *connection, const struct reply *reply)
{
    static const char KEY[] = "\"address\":\"";
    const char *value = strstr(reply->text, KEY);
    size_t size;

    if (!value)
        return;
    value += sizeof(KEY) - 1;
    size = strcspn(value, "\"");
    if (size < sizeof(connection->address))
        memcpy(connection->address, value, size);
}

const char *connection_path(const char *path)
{
    if (!path)
        path = secure_getenv("TROUPE_SOCKET");
    return path && *path ? path : DEFAULT_PATH;
}

int connection_socket(const char *path)
{
    return open_socket(connection_path(path));
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
    /* A supervisor that refuses at once has sent its reason and closed the socket. */
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
