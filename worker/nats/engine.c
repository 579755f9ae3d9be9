/* SPDX-License-Identifier: MIT */
#include "worker/nats/engine.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>

#define RECONNECT_MIN_MS 100
#define RECONNECT_MAX_MS 30000
#define FLUSH_MS         1000

/* What is sent waits for the network so long at most, and with it the main loop. A server that does
 * not answer for so many of these times is given up. */
#define WRITE_MS         2000
#define PING_INTERVAL_MS 10000
#define PINGS_MAX        2

struct arrival {
    struct list link;
    enum engine_event event;
    natsMsg *message;
};

/* ---- on libnats' threads ---- */

static void engine_put(struct engine *engine, enum engine_event event, natsMsg *message)
{
    struct arrival *arrival = malloc(sizeof(*arrival));
    bool first;

    if (!arrival) {
        /* A message comes again; what is lost of a connection shows in the next request. */
        natsMsg_Destroy(message);
        return;
    }
    *arrival = (struct arrival){.event = event, .message = message};
    pthread_mutex_lock(&engine->lock);
    first = list_empty(&engine->arrivals);
    list_push_back(&engine->arrivals, &arrival->link);
    pthread_mutex_unlock(&engine->lock);
    if (first) /* engine_next() is called until there are no more */
        (void)eventfd_write(engine->fd, 1);
}

static void on_message(natsConnection *connection, natsSubscription *subscription, natsMsg *message,
                       void *userdata)
{
    (void)connection;
    (void)subscription;
    engine_put(userdata, ENGINE_MESSAGE, message);
}

static void on_connected(natsConnection *connection, void *userdata)
{
    (void)connection;
    engine_put(userdata, ENGINE_CONNECTED, NULL);
}

static void on_disconnected(natsConnection *connection, void *userdata)
{
    (void)connection;
    engine_put(userdata, ENGINE_DISCONNECTED, NULL);
}

static void on_closed(natsConnection *connection, void *userdata)
{
    (void)connection;
    engine_put(userdata, ENGINE_CLOSED, NULL);
}

/* Without a handler, libnats prints errors to standard error. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status,
                     void *userdata)
{
    (void)connection;
    (void)subscription;
    (void)status;
    (void)userdata;
}

/* Doubles the pause with each attempt, and takes a random part of it away, so that many clients do
 * not come at once. */
static int64_t reconnect_delay(natsConnection *connection, int attempts, void *userdata)
{
    const int shift = attempts < 1 ? 0 : attempts > 9 ? 9 : attempts - 1;
    int64_t delay = (int64_t)RECONNECT_MIN_MS << shift;

    (void)connection;
    (void)userdata;
    if (delay > RECONNECT_MAX_MS)
        delay = RECONNECT_MAX_MS;
    return delay - (int64_t)(clock_now() % (usec_t)(delay / 2));
}

/* ---- on the main loop ---- */

#define TLS_SCHEME "tls://"

static natsStatus set_servers(natsOptions *options, const struct config *config)
{
    _cleanup_free_ char *text = strdup(config->url);
    const char *urls[CONFIG_URLS_MAX];
    bool secure = config->ca_file || config->certificate_file;
    natsStatus s;
    size_t n;

    if (!text)
        return NATS_NO_MEMORY;
    n = config_split_urls(text, urls);
    for (size_t i = 0; i < n; i++)
        secure = secure || strncasecmp(urls[i], TLS_SCHEME, strlen(TLS_SCHEME)) == 0;
    s = natsOptions_SetServers(options, urls, (int)n);
    /* libnats before 3.13 ignores the scheme. */
    return s == NATS_OK && secure ? natsOptions_SetSecure(options, true) : s;
}

static natsStatus set_identity(natsOptions *options, const struct config *config)
{
    natsStatus s = NATS_OK;

    if (config->credentials)
        s = natsOptions_SetUserCredentialsFromFiles(options, config->credentials, NULL);
    if (s == NATS_OK && config->nkey)
        s = natsOptions_SetNKeyFromSeed(options, config->nkey, config->nkey_file);
    if (s == NATS_OK && config->ca_file)
        s = natsOptions_LoadCATrustedCertificates(options, config->ca_file);
    if (s == NATS_OK && config->certificate_file)
        s = natsOptions_LoadCertificatesChain(options, config->certificate_file, config->key_file);
    return s;
}

static natsStatus set_patience(natsOptions *options)
{
    natsStatus s = natsOptions_SetWriteDeadline(options, WRITE_MS);

    if (s == NATS_OK)
        s = natsOptions_SetPingInterval(options, PING_INTERVAL_MS);
    return s == NATS_OK ? natsOptions_SetMaxPingsOut(options, PINGS_MAX) : s;
}

static natsStatus set_handlers(natsOptions *options, struct engine *engine)
{
    natsStatus s = natsOptions_SetRetryOnFailedConnect(options, true, on_connected, engine);

    if (s == NATS_OK)
        s = natsOptions_SetMaxReconnect(options, -1);
    if (s == NATS_OK)
        s = natsOptions_SetCustomReconnectDelay(options, reconnect_delay, NULL);
    if (s == NATS_OK)
        s = natsOptions_SetReconnectedCB(options, on_connected, engine);
    if (s == NATS_OK)
        s = natsOptions_SetDisconnectedCB(options, on_disconnected, engine);
    if (s == NATS_OK)
        s = natsOptions_SetClosedCB(options, on_closed, engine);
    if (s == NATS_OK)
        s = natsOptions_SetErrorHandler(options, on_error, NULL);
    return s;
}

natsStatus engine_options(natsOptions **ret, const struct config *config)
{
    natsStatus s = natsOptions_Create(ret);

    if (s == NATS_OK)
        s = natsOptions_SetName(*ret, "troupe-nats");
    if (s == NATS_OK)
        s = set_servers(*ret, config);
    if (s == NATS_OK)
        s = set_identity(*ret, config);
    return s == NATS_OK ? set_patience(*ret) : s;
}

static natsStatus engine_configure(struct engine *engine, const struct config *config)
{
    natsStatus s = engine_options(&engine->options, config);

    return s == NATS_OK ? set_handlers(engine->options, engine) : s;
}

/* What may come is bounded by what is asked for. */
static natsStatus subscribe(struct engine *engine, const char *pattern, natsSubscription **ret)
{
    char subject[128];
    natsStatus s;

    (void)snprintf(subject, sizeof(subject), "%s.%s", (const char *)engine->inbox, pattern);
    s = natsConnection_Subscribe(ret, engine->connection, subject, on_message, engine);
    return s == NATS_OK ? natsSubscription_SetPendingLimits(*ret, -1, -1) : s;
}

static natsStatus listen_again(struct engine *engine)
{
    char pattern[32];

    (void)snprintf(engine->prefix, sizeof(engine->prefix), "%c%u.", ENGINE_MESSAGES,
                   ++engine->n_prefixes);
    (void)snprintf(pattern, sizeof(pattern), "%s*", engine->prefix);
    return subscribe(engine, pattern, &engine->messages);
}

static natsStatus engine_subscribe(struct engine *engine)
{
    natsStatus s = natsInbox_Create(&engine->inbox);

    if (s == NATS_OK)
        s = subscribe(engine, "*", &engine->answers);
    return s == NATS_OK ? listen_again(engine) : s;
}

int engine_init(struct engine *engine, const struct config *config)
{
    natsStatus s;

    *engine = (struct engine){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                              .lock = PTHREAD_MUTEX_INITIALIZER};
    list_init(&engine->arrivals);
    if (engine->fd < 0)
        return -errno;
    s = engine_configure(engine, config);
    if (s == NATS_OK)
        s = natsConnection_Connect(&engine->connection, engine->options);
    if (s == NATS_OK)
        engine_put(engine, ENGINE_CONNECTED, NULL);
    if (s == NATS_OK || s == NATS_NOT_YET_CONNECTED)
        s = engine_subscribe(engine);
    if (s == NATS_OK)
        return 0;
    if (engine->connection && natsConnection_IsClosed(engine->connection))
        log_error(ENGINE_REFUSED);
    else
        log_error("NATS: %s", natsStatus_GetText(s));
    return -EIO;
}

void engine_deinit(struct engine *engine)
{
    natsMsg *message;
    enum engine_event event;

    natsSubscription_Destroy(engine->answers);
    natsSubscription_Destroy(engine->messages);
    natsConnection_Destroy(engine->connection);
    natsOptions_Destroy(engine->options);
    natsInbox_Destroy(engine->inbox);
    while (engine_next(engine, &event, &message))
        natsMsg_Destroy(message);
    /* From then on no callback runs, and no message can be destroyed: one that a last callback has
     * brought is left to the end of the process. */
    nats_CloseAndWait(FLUSH_MS);
    while (engine_next(engine, &event, &message))
        continue;
    engine->fd = close_fd(engine->fd);
}

bool engine_next(struct engine *engine, enum engine_event *ret_event, natsMsg **ret_message)
{
    struct arrival *arrival = NULL;
    struct list *node;

    pthread_mutex_lock(&engine->lock);
    node = list_first(&engine->arrivals);
    if (node) {
        arrival = list_entry(node, struct arrival, link);
        list_unlink(node);
    } else {
        eventfd_t ignored;

        (void)eventfd_read(engine->fd, &ignored);
    }
    pthread_mutex_unlock(&engine->lock);
    if (!arrival)
        return false;
    *ret_event = arrival->event;
    *ret_message = arrival->message;
    free(arrival);
    return true;
}

const char *engine_token(const struct engine *engine, natsMsg *message)
{
    const char *subject = natsMsg_GetSubject(message), *inbox = (const char *)engine->inbox;
    const size_t length = strlen(inbox);

    return strncmp(subject, inbox, length) == 0 && subject[length] == '.' ? subject + length + 1
                                                                          : NULL;
}

static int error_of(natsStatus s)
{
    switch (s) {
    case NATS_OK:
        return 0;
    case NATS_MAX_PAYLOAD:
        return -EMSGSIZE;
    case NATS_NO_MEMORY:
        return -ENOMEM;
    case NATS_INSUFFICIENT_BUFFER: /* what waits for a reconnection */
        return -ENOBUFS;
    default:
        return -ENOTCONN;
    }
}

natsMsg *engine_message(const struct engine *engine, const char *subject, const char *token,
                        const void *data, size_t size)
{
    natsMsg *message = NULL;
    char reply[128];

    (void)snprintf(reply, sizeof(reply), "%s.%s", (const char *)engine->inbox, token ? token : "");
    return natsMsg_Create(&message, subject, token ? reply : NULL, data, (int)size) == NATS_OK
               ? message
               : NULL;
}

int engine_publish(struct engine *engine, natsMsg *message)
{
    return error_of(natsConnection_PublishMsg(engine->connection, message));
}

int engine_request(struct engine *engine, const char *subject, const char *token, const char *text)
{
    char reply[128];

    (void)snprintf(reply, sizeof(reply), "%s.%s", (const char *)engine->inbox, token);
    return error_of(natsConnection_PublishRequestString(engine->connection, subject, reply, text));
}

void engine_acknowledge(struct engine *engine, natsMsg *message, const char *text)
{
    /* If this is lost, the message comes again and is recognised. */
    (void)natsConnection_PublishString(engine->connection, natsMsg_GetReply(message), text);
}

void engine_drain(struct engine *engine)
{
    if (engine->messages)
        (void)natsSubscription_Drain(engine->messages);
}

void engine_listen(struct engine *engine)
{
    /* What was on its way has come by now, or comes again. */
    natsSubscription_Destroy(engine->messages);
    engine->messages = NULL;
    if (listen_again(engine) != NATS_OK)
        log_warning("NATS: no messages can be received: out of memory, or the connection is over");
}

void engine_flush(struct engine *engine)
{
    (void)natsConnection_FlushTimeout(engine->connection, FLUSH_MS);
}

size_t engine_max_payload(const struct engine *engine)
{
    const int64_t max = natsConnection_GetMaxPayload(engine->connection);

    return max > 0 ? (size_t)max : SIZE_MAX;
}
