/* SPDX-License-Identifier: MIT */
#include "worker/nats/leftovers.h"

#include "shared/base/log.h"
#include "worker/nats/engine-connection.h"
#include "worker/nats/publication.h"
#include <errno.h>
#include <stdio.h>

#define QUESTION_SUBJECT "$JS.API.STREAM.MSG.GET." PUBLICATION_STREAM
#define PURGE_SUBJECT    "$JS.API.STREAM.PURGE." PUBLICATION_STREAM
#define FILTER_SIZE      128

static int refuse(const struct config *config, const char *found, const char *filter)
{
    log_error("stream %s: not made, as the stream " PUBLICATION_STREAM
              " holds what an earlier stream of this name has left: %s. The new stream would start "
              "at sequence 1, and its jobs would be taken for jobs that are done. Choose another "
              "name (Stream=); or wait until no machine keeps results of the old jobs "
              "(ResultTTLSec=), then send {\"filter\":\"%s\"} to " PURGE_SUBJECT,
              config->stream, found, filter);
    return -EEXIST;
}

static int fail(const struct config *config, const char *problem)
{
    log_error("stream %s: not made, as " QUESTION_SUBJECT
              " does not say whether there are results of an earlier stream of this name: %s",
              config->stream, problem);
    return -EIO;
}

static int judge(const struct config *config, const char *filter, const json_t *reply)
{
    const json_t *error = json_object_get(reply, "error");
    const json_int_t code = json_integer_value(json_object_get(error, "err_code"));
    const char *text = json_string_value(json_object_get(error, "description"));
    const char *found =
        json_string_value(json_object_get(json_object_get(reply, "message"), "subject"));

    if (code == JSNoMessageFoundErr || code == JSStreamNotFoundErr)
        return 0;
    if (!error && found)
        return refuse(config, found, filter);
    return fail(config, text ? text : "the answer cannot be understood");
}

/* The list of subjects in STREAM.INFO would have a line for each result; this has one at most. */
static int ask(const struct client *client, const struct config *config, const char *filter)
{
    char question[FILTER_SIZE + 32];
    natsMsg *answer = NULL;
    natsStatus s;
    json_t *reply;
    int r;

    (void)snprintf(question, sizeof(question), "{\"seq\":1,\"next_by_subj\":\"%s\"}", filter);
    s = natsConnection_RequestString(&answer, client->connection, QUESTION_SUBJECT, question,
                                     CLIENT_WAIT_MS);
    if (s != NATS_OK)
        return fail(config, s == NATS_NO_RESPONDERS ? ENGINE_NO_JETSTREAM : engine_error(s));
    reply = json_loadb(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer), 0, NULL);
    r = judge(config, filter, reply);
    json_decref(reply);
    natsMsg_Destroy(answer);
    return r;
}

int leftovers_check(const struct client *client, const struct config *config)
{
    char filter[FILTER_SIZE];
    int r;

    (void)snprintf(filter, sizeof(filter), PUBLICATION_RESULT_SUBJECT "%s.>", config->stream);
    r = ask(client, config, filter);
    if (r != 0)
        return r;
    (void)snprintf(filter, sizeof(filter), PUBLICATION_LETTER_SUBJECT "*.%s.>", config->stream);
    return ask(client, config, filter);
}
