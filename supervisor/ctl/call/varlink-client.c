/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/varlink-client.h"

#include "shared/base/cleanup.h"
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define READ_SIZE ((size_t)64 << 10)

int varlink_client_init(struct varlink_client *client, const char *path, usec_t timeout)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_close_ int fd = -1;

    *client = (struct varlink_client){.fd = -1, .timeout = timeout};
    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    client->fd = TAKE_FD(fd);
    return 0;
}

void varlink_client_deinit(struct varlink_client *client)
{
    close_fd(client->fd);
    free(client->buffer);
    *client = (struct varlink_client)VARLINK_CLIENT_NULL;
}

/* 0 when ready, -ETIMEDOUT, -EINTR or another -errno. */
static int wait_ready(const struct varlink_client *client, short events, usec_t deadline)
{
    struct pollfd poller = {.fd = client->fd, .events = events};
    usec_t left = deadline == USEC_INFINITY ? USEC_INFINITY : usec_sub(deadline, clock_now());
    struct timespec limit = usec_to_timespec(left);
    int r;

    r = ppoll(&poller, 1, deadline == USEC_INFINITY ? NULL : &limit, NULL);
    if (r < 0)
        return -errno;
    return r == 0 ? -ETIMEDOUT : 0;
}

static int send_all(struct varlink_client *client, const char *data, size_t size)
{
    usec_t deadline = usec_add(clock_now(), client->timeout);

    while (size > 0) {
        ssize_t n = send(client->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EAGAIN) {
            int r = wait_ready(client, POLLOUT, deadline);

            if (r < 0 && r != -EINTR)
                return r;
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

int varlink_client_send(struct varlink_client *client, const char *method, json_t *parameters,
                        bool more)
{
    _cleanup_free_ char *text = NULL;
    json_t *request;

    request = json_pack("{s:s, s:o}", "method", method, "parameters", parameters);
    if (request && more && json_object_set_new(request, "more", json_true()) < 0) {
        json_decref(request);
        request = NULL;
    }
    if (request)
        text = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    if (!text)
        return -ENOMEM;
    if (strlen(text) + 1 > VARLINK_CLIENT_REQUEST_MAX)
        return -EMSGSIZE;
    return send_all(client, text, strlen(text) + 1);
}

/* Makes room for READ_SIZE more bytes after `end`. */
static int make_room(struct varlink_client *client)
{
    size_t wanted;
    char *buffer;

    if (client->start > 0) {
        memmove(client->buffer, client->buffer + client->start, client->end - client->start);
        client->end -= client->start;
        client->searched -= client->start;
        client->start = 0;
    }
    if (client->allocated - client->end >= READ_SIZE)
        return 0;
    if (client->end > VARLINK_CLIENT_REPLY_MAX)
        return -EPROTO;
    wanted = 2 * client->allocated + READ_SIZE;
    buffer = realloc(client->buffer, wanted);
    if (!buffer)
        return -ENOMEM;
    client->buffer = buffer;
    client->allocated = wanted;
    return 0;
}

static int receive_more(struct varlink_client *client, usec_t deadline)
{
    ssize_t n;
    int r;

    r = make_room(client);
    if (r < 0)
        return r;
    r = wait_ready(client, POLLIN, deadline);
    if (r < 0)
        return r;
    n = recv(client->fd, client->buffer + client->end, client->allocated - client->end,
             MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN ? 0 : -errno;
    if (n == 0)
        return -ECONNRESET;
    client->end += (size_t)n;
    return 0;
}

/* The length of the first complete message without its NUL, or -1. */
static ssize_t message_length(struct varlink_client *client)
{
    const char *nul = NULL;

    if (client->end > client->searched)
        nul = memchr(client->buffer + client->searched, '\0', client->end - client->searched);
    client->searched = client->end;
    return nul ? nul - (client->buffer + client->start) : -1;
}

static int parse_reply(const char *text, size_t size, struct varlink_reply *ret)
{
    json_t *root = json_loadb(text, size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL), *error;
    int r = -EPROTO;

    *ret = (struct varlink_reply)VARLINK_REPLY_NULL;
    error = json_object_get(root, "error");
    if (!json_is_object(root) || (error && !json_is_string(error)))
        goto out;
    ret->continues = json_is_true(json_object_get(root, "continues"));
    ret->parameters = json_incref(json_object_get(root, "parameters"));
    if (!ret->parameters)
        ret->parameters = json_object();
    if (!json_is_object(ret->parameters))
        goto out;
    if (error)
        ret->error = strdup(json_string_value(error));
    r = error && !ret->error ? -ENOMEM : 0;
out:
    json_decref(root);
    if (r < 0)
        varlink_reply_deinit(ret);
    return r;
}

int varlink_client_receive(struct varlink_client *client, struct varlink_reply *ret)
{
    usec_t deadline = usec_add(clock_now(), client->timeout);
    ssize_t length;
    int r;

    while ((length = message_length(client)) < 0) {
        r = receive_more(client, deadline);
        if (r < 0)
            return r;
    }
    r = parse_reply(client->buffer + client->start, (size_t)length, ret);
    client->start += (size_t)length + 1;
    client->searched = client->start;
    return r;
}

void varlink_reply_deinit(struct varlink_reply *reply)
{
    json_decref(reply->parameters);
    free(reply->error);
    *reply = (struct varlink_reply)VARLINK_REPLY_NULL;
}
