/* SPDX-License-Identifier: MIT */
#include "supervisor/caller/varlink-client.h"

#include "shared/base/cleanup.h"
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int varlink_client_init(struct varlink_client *client, const char *path, usec_t timeout)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_close_ int fd = -1;

    *client = (struct varlink_client){.fd = -1, .timeout = timeout};
    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (timeout == 0 ? SOCK_NONBLOCK : 0), 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    client->fd = TAKE_FD(fd);
    client->reader = reader_make(client->fd, '\0', true, VARLINK_CLIENT_REPLY_MAX);
    return 0;
}

void varlink_client_deinit(struct varlink_client *client)
{
    close_fd(client->fd);
    reader_deinit(&client->reader);
    *client = (struct varlink_client)VARLINK_CLIENT_NULL;
}

/* Returns 0, -ETIMEDOUT or another -errno. */
static int wait_writable(int fd, usec_t deadline)
{
    struct pollfd poller = {.fd = fd, .events = POLLOUT};
    struct timespec left = usec_to_timespec(clock_left(deadline));
    int r = ppoll(&poller, 1, deadline == USEC_INFINITY ? NULL : &left, NULL);

    if (r < 0)
        return errno == EINTR ? 0 : -errno;
    return r == 0 ? -ETIMEDOUT : 0;
}

static int send_all(struct varlink_client *client, const char *data, size_t size)
{
    const usec_t deadline = clock_deadline(client->timeout);
    int r = 0;

    while (r == 0 && size > 0) {
        ssize_t n = send(client->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EAGAIN) {
            r = wait_writable(client->fd, deadline);
        } else if (n < 0) {
            r = errno == EINTR ? 0 : -errno;
        } else {
            data += n;
            size -= (size_t)n;
        }
    }
    return r;
}

int varlink_client_send(struct varlink_client *client, const char *method, json_t *parameters,
                        bool more)
{
    _cleanup_free_ char *text = NULL;
    json_t *request = json_pack("{s:s, s:o}", "method", method, "parameters", parameters);

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

static int parse_reply(const char *text, size_t size, struct varlink_reply *ret)
{
    json_auto_t *root = json_loadb(text, size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    const json_t *error = json_object_get(root, "error");
    json_t *parameters = json_object_get(root, "parameters");

    if (!json_is_object(root) || (error && !json_is_string(error)) ||
        (parameters && !json_is_object(parameters)))
        return -EPROTO;
    *ret = (struct varlink_reply){
        .parameters = parameters ? json_incref(parameters) : json_object(),
        .error = error ? strdup(json_string_value(error)) : NULL,
        .continues = json_is_true(json_object_get(root, "continues")),
    };
    if (ret->parameters && (!error || ret->error))
        return 0;
    varlink_reply_deinit(ret);
    return -ENOMEM;
}

int varlink_client_receive(struct varlink_client *client, struct varlink_reply *ret)
{
    const usec_t deadline = clock_deadline(client->timeout);
    const char *text;
    size_t size;
    int r;

    do
        r = reader_next(&client->reader, deadline, &text, &size);
    while (r == -EINTR);
    if (r == READER_E_LATER)
        return -ETIMEDOUT;
    if (r == READER_E_END)
        return -ECONNRESET;
    if (r == -EMSGSIZE)
        return -EPROTO;
    return r < 0 ? r : parse_reply(text, size, ret);
}

void varlink_reply_deinit(struct varlink_reply *reply)
{
    json_decref(reply->parameters);
    free(reply->error);
    *reply = (struct varlink_reply)VARLINK_REPLY_NULL;
}
