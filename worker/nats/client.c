/* SPDX-License-Identifier: MIT */
#include "worker/nats/client.h"

#include "shared/base/log.h"
#include "worker/nats/engine.h"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int status_of(natsStatus s)
{
    switch (s) {
    case NATS_OK:
        return CLIENT_OK;
    case NATS_CONNECTION_AUTH_FAILED:
    case NATS_NOT_PERMITTED:
        return CLIENT_NOT_PERMITTED;
    case NATS_NOT_FOUND:
        return CLIENT_NOT_FOUND;
    case NATS_NO_SERVER:
    case NATS_TIMEOUT:
    case NATS_NO_RESPONDERS:
    case NATS_CONNECTION_CLOSED:
    case NATS_CONNECTION_DISCONNECTED:
    case NATS_IO_ERROR:
    case NATS_PROTOCOL_ERROR:
    case NATS_SSL_ERROR:
    case NATS_SECURE_CONNECTION_REQUIRED:
    case NATS_SECURE_CONNECTION_WANTED:
        return CLIENT_UNREACHABLE;
    default:
        return CLIENT_FAILED;
    }
}

int client_fail(const struct client *client, const char *what, natsStatus s)
{
    const char *denial = NULL;

    if (client->connection &&
        natsConnection_GetLastError(client->connection, &denial) == NATS_NOT_PERMITTED) {
        log_error("%s: NATS denies this user a permission: %s", what, denial ? denial : "");
        return CLIENT_NOT_PERMITTED;
    }
    log_error("%s: %s", what, s == NATS_NO_RESPONDERS ? ENGINE_NO_JETSTREAM : engine_error(s));
    return status_of(s);
}

natsStatus client_ask(const struct client *client, const char *subject, const char *question,
                      json_t **ret)
{
    natsMsg *answer = NULL;
    natsStatus s = natsConnection_RequestString(&answer, client->connection, subject, question,
                                                CLIENT_WAIT_MS);

    *ret = s == NATS_OK ? engine_json(answer) : NULL;
    natsMsg_Destroy(answer);
    return s == NATS_OK && !*ret ? NATS_PROTOCOL_ERROR : s;
}

natsStatus client_find_message(const struct client *client, const char *stream, const char *filter,
                               json_int_t sequence, json_t **ret)
{
    char subject[128], question[256];

    (void)snprintf(subject, sizeof(subject), "$JS.API.STREAM.MSG.GET.%s", stream);
    (void)snprintf(question, sizeof(question),
                   "{\"seq\":%" JSON_INTEGER_FORMAT ",\"next_by_subj\":\"%s\"}", sequence, filter);
    return client_ask(client, subject, question, ret);
}

json_int_t client_error_code(const json_t *reply)
{
    const char *text;

    return engine_json_error(reply, &text);
}

int client_open(struct client *client, const struct config *config)
{
    char sentence[ENGINE_SENTENCE_SIZE];
    jsOptions options;
    natsStatus s;
    bool secure;

    *client = (struct client)CLIENT_NULL;
    (void)signal(SIGPIPE, SIG_IGN);
    s = engine_options(&client->options, config, &secure);
    if (s == NATS_OK)
        s = engine_connect(&client->connection, client->options);
    if (s != NATS_OK) {
        engine_explain(sentence, config, s, engine_error(s));
        log_error("%s", sentence);
        return status_of(s);
    }
    (void)jsOptions_Init(&options);
    options.Wait = CLIENT_WAIT_MS;
    s = natsConnection_JetStream(&client->js, client->connection, &options);
    return s == NATS_OK ? CLIENT_OK : client_fail(client, "JetStream", s);
}

void client_close(struct client *client)
{
    jsCtx_Destroy(client->js);
    natsConnection_Destroy(client->connection);
    natsOptions_Destroy(client->options);
    *client = (struct client)CLIENT_NULL;
}

int client_finish(json_t *document)
{
    const size_t flags = isatty(STDOUT_FILENO) ? JSON_INDENT(2) | JSON_ENSURE_ASCII : JSON_COMPACT;

    /* Other machines have written it: a terminal must not interpret that. */
    if (document && json_dumpf(document, stdout, flags) == 0)
        puts("");
    json_decref(document);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return CLIENT_OK;
    log_error("standard output: cannot write");
    return CLIENT_FAILED;
}
