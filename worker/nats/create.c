/* SPDX-License-Identifier: MIT */
/* Sends a job, as troupe-nats(8) describes it for any client. */
#include "worker/nats/verbs.h"

#include "shared/base/buffer.h"
#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "worker/nats/config.h"
#include "worker/nats/message.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define HEADER_ID "Nats-Msg-Id"
#define ID_MAX    255u

/* While servers elect a leader, they do not answer. A message with an id may be sent again. */
#define TRIES      5u
#define TRIES_WAIT 500 /* ms */

static int read_payload(char **ret, size_t *ret_size)
{
    struct buffer buffer = BUFFER_NULL;
    int r = buffer_read(&buffer, STDIN_FILENO);

    *ret = r == 0 ? buffer_take(&buffer, ret_size) : NULL;
    buffer_deinit(&buffer);
    if (*ret)
        return CLIENT_OK;
    log_error("standard input: %s", strerror(r < 0 ? -r : ENOMEM));
    return CLIENT_FAILED;
}

/* Whether it can follow jobs.GROUP. in a subject: no part may be empty or a wildcard. */
static bool fits_subject(const char *key)
{
    const size_t length = strlen(key);

    return length > 0 && key[0] != '.' && key[length - 1] != '.' && !strstr(key, "..") &&
           strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=/.") ==
               length;
}

static bool fits_header(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    /* Servers remove blanks at both ends. */
    return *text != '\0' && *text != ' ' && text[strlen(text) - 1] != ' ' && strlen(text) <= ID_MAX;
}

static int bad_text(const char *option)
{
    log_error("--%s: no valid value; allowed: 1 to %u bytes, no control characters, no blank at "
              "either end",
              option, ID_MAX);
    return CLIENT_USAGE;
}

static natsStatus set_header(natsMsg *message, const char *name, const char *value)
{
    return value ? natsMsgHeader_Set(message, name, value) : NATS_OK;
}

static natsStatus set_headers(natsMsg *message, const struct create *create, const char *id)
{
    const bool key_in_subject = create->key && fits_subject(create->key);
    natsStatus s = set_header(message, HEADER_ID, id);

    if (s == NATS_OK && !key_in_subject)
        s = set_header(message, MESSAGE_HEADER_KEY, create->key);
    if (s == NATS_OK)
        s = set_header(message, MESSAGE_HEADER_PRIORITY, create->priority);
    if (s == NATS_OK)
        s = set_header(message, MESSAGE_HEADER_DELAY, create->delay);
    return s == NATS_OK ? set_header(message, MESSAGE_HEADER_TIMEOUT, create->timeout) : s;
}

/* Rejects a message that a machine would refuse. */
static int check(natsMsg *message)
{
    struct troupe_job_options options;
    const char *problem;

    if (message_options(message, &options, &problem) == 0)
        return CLIENT_OK;
    log_error("%s", problem);
    return CLIENT_USAGE;
}

static int make(const struct create *create, const char *id, const char *data, size_t size,
                natsMsg **ret)
{
    _cleanup_free_ char *subject = NULL;
    natsStatus s;

    if (asprintf(&subject, MESSAGE_SUBJECT "%s.%s", create->group,
                 create->key && fits_subject(create->key) ? create->key : MESSAGE_KEY_ANY) < 0) {
        subject = NULL;
        return client_fail("the message", NATS_NO_MEMORY);
    }
    s = size > INT32_MAX ? NATS_MAX_PAYLOAD : natsMsg_Create(ret, subject, NULL, data, (int)size);
    if (s == NATS_OK)
        s = set_headers(*ret, create, id);
    return s == NATS_OK ? check(*ret) : client_fail("the message", s);
}

static int fail_publish(const struct client *client, const struct create *create, natsStatus s)
{
    if (s == NATS_MAX_PAYLOAD) {
        log_error("the payload is larger than this server takes, which is %" PRId64
                  " bytes with headers (max_payload)",
                  natsConnection_GetMaxPayload(client->connection));
        return CLIENT_USAGE;
    }
    if (client_is_denied(client))
        return client_fail_denied(client);
    if (s == NATS_TIMEOUT || s == NATS_NO_RESPONDERS)
        log_error("no stream has confirmed the job: too few servers are up, or they elect a "
                  "leader, or there is no stream (\"troupe-nats setup %s\" makes one). It may be "
                  "stored nevertheless: send it again with the same --id",
                  create->group);
    else
        return client_fail("the job", s);
    return CLIENT_UNREACHABLE;
}

struct stored {
    char id[64]; /* "STREAM:SEQUENCE" */
    bool before; /* by an earlier message with the same id */
};

static int publish(const struct client *client, const struct create *create, natsMsg *message,
                   struct stored *ret)
{
    jsPubAck *ack = NULL;
    natsStatus s = NATS_OK;

    for (unsigned i = 0; i < TRIES; i++) {
        if (i > 0)
            nats_Sleep(TRIES_WAIT);
        s = js_PublishMsg(&ack, client->js, message, NULL, NULL);
        if ((s != NATS_NO_RESPONDERS && s != NATS_TIMEOUT) || client_is_denied(client))
            break;
    }
    if (s != NATS_OK)
        return fail_publish(client, create, s);
    (void)snprintf(ret->id, sizeof(ret->id), "%s:%" PRIu64, ack->Stream, ack->Sequence);
    ret->before = ack->Duplicate;
    jsPubAck_Destroy(ack);
    return CLIENT_OK;
}

static void make_id(char id[static 33])
{
    uint64_t random[2] = {(uint64_t)getpid(), clock_realtime()};

    (void)!getrandom(random, sizeof(random), GRND_NONBLOCK);
    (void)snprintf(id, 33, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
}

static int store(const struct config *config, const struct create *create,
                 const struct output *output, struct stored *ret)
{
    struct client client = CLIENT_NULL;
    _cleanup_free_ char *data = NULL;
    natsMsg *message = NULL;
    char id[33];
    size_t size;
    int r;

    /* libnats must be open before a message of it is made or destroyed. */
    (void)nats_Open(-1);
    if (config_check_group(create->group) < 0)
        return CLIENT_USAGE;
    if (create->id && !fits_header(create->id))
        return bad_text("id");
    if (create->key && !fits_header(create->key))
        return bad_text("key");
    make_id(id);
    r = read_payload(&data, &size);
    if (r == CLIENT_OK)
        r = make(create, create->id ? create->id : id, data, size, &message);
    if (r == CLIENT_OK)
        r = client_open(&client, config);
    if (r == CLIENT_OK)
        r = publish(&client, create, message, ret);
    natsMsg_Destroy(message);
    client_close(&client);
    if (r == CLIENT_OK && ret->before && !output->quiet)
        log_notice("a message with this --id was stored before, as job %s; nothing was added",
                   ret->id);
    return r;
}

int create_job(const struct config *config, const struct create *create,
               const struct output *output)
{
    struct stored stored;
    int r = store(config, create, output, &stored);

    if (r != CLIENT_OK)
        return r;
    if (output->json)
        return client_print(
            json_pack("{s:s, s:b}", "id", stored.id, "stored_before", stored.before));
    puts(stored.id);
    return client_flush();
}

int create_and_await_job(const struct config *config, const struct create *create,
                         const struct output *output)
{
    struct stored stored;
    int r = store(config, create, output, &stored);

    return r == CLIENT_OK ? await_job(config, stored.id, USEC_INFINITY, output) : r;
}
