/* SPDX-License-Identifier: MIT */
#include "supervisor/caller/varlink-client.h"

#include "shared/base/cleanup.h"
#include "shared/base/stream.h"
#include <string.h>

int varlink_client_init(struct varlink_client *client, const char *path, usec_t timeout)
{
    const int fd = stream_connect(path, timeout);

    *client = (struct varlink_client){.fd = fd < 0 ? -1 : fd, .timeout = timeout};
    client->reader = reader_make(client->fd, '\0', true, VARLINK_CLIENT_REPLY_MAX);
    return fd < 0 ? fd : 0;
}

void varlink_client_deinit(struct varlink_client *client)
{
    close_fd(client->fd);
    reader_deinit(&client->reader);
    *client = (struct varlink_client)VARLINK_CLIENT_NULL;
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
    return stream_send(client->fd, text, strlen(text) + 1);
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

bool varlink_reply_is(const struct varlink_reply *reply, const char *error)
{
    return reply->error && strcmp(reply->error, error) == 0;
}
