/* SPDX-License-Identifier: MIT */
#include "worker/nats/engine.h"

#include "shared/base/log.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#define RECONNECT_MIN_MS    100
#define RECONNECT_MAX_MS    30000
#define RECONNECT_SHIFT_MAX 9u
/* A connection that ends within this time counts as a failed attempt: a server may accept and then
 * end each one. */
#define BRIEF_USEC (10 * USEC_PER_SEC)
#define FLUSH_USEC USEC_PER_SEC

/* The most bytes that wait for a slow socket. Further ones are not sent now; their senders repeat
 * them. */
#define UNSENT_MAX (64 << 20)

/* ---- on libnats' threads ---- */

static void put_event(struct engine *engine, enum engine_event event)
{
    engine_arrivals_put(&engine->arrivals, (struct engine_arrival){.event = event});
}

/* A message of a stream keeps its own subject, so it has no token. */
static bool is_unanswered(const struct engine *engine, natsMsg *message)
{
    return natsMsg_IsNoResponders(message) && engine_token(engine, message);
}

/* With TLS, and while guarded. */
static void on_message(natsConnection *connection, natsSubscription *subscription, natsMsg *message,
                       void *userdata)
{
    const struct engine_subscription *s = userdata;
    struct engine_arrival what = {ENGINE_MESSAGE, s->channel, message};

    (void)connection;
    (void)subscription;
    if (is_unanswered(s->engine, message)) {
        natsMsg_Destroy(message);
        what = (struct engine_arrival){ENGINE_UNANSWERED, s->channel, NULL};
    }
    engine_arrivals_put(&s->engine->arrivals, what);
}

/* Returns whether the text has changed. */
static bool set_text(struct engine *engine, char *text, const char *sentence)
{
    bool changed;

    pthread_mutex_lock(&engine->lock);
    changed = strcmp(text, sentence) != 0;
    (void)snprintf(text, ENGINE_SENTENCE_SIZE, "%s", sentence);
    pthread_mutex_unlock(&engine->lock);
    return changed;
}

static bool note_refusal(struct engine *engine, natsConnection *connection)
{
    const char *text = NULL;
    const natsStatus s = natsConnection_GetLastError(connection, &text);
    char sentence[ENGINE_SENTENCE_SIZE] = "";

    if (s != NATS_OK && s != NATS_NO_SERVER)
        engine_explain(sentence, engine->config, s, text);
    return set_text(engine, engine->refusal, sentence);
}

static void on_connected(natsConnection *connection, void *userdata)
{
    struct engine *engine = userdata;

    (void)connection;
    engine->denied = false;
    (void)set_text(engine, engine->refusal, "");
    put_event(engine, ENGINE_CONNECTED);
}

static void on_disconnected(natsConnection *connection, void *userdata)
{
    (void)connection;
    put_event(userdata, ENGINE_DISCONNECTED);
}

static void on_closed(natsConnection *connection, void *userdata)
{
    (void)note_refusal(userdata, connection);
    put_event(userdata, ENGINE_CLOSED);
}

/* Without a handler, libnats prints errors to standard error. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status,
                     void *userdata)
{
    struct engine *engine = userdata;

    (void)connection;
    (void)subscription;
    if (status != NATS_NOT_PERMITTED || engine->denied)
        return;
    engine->denied = true;
    (void)set_text(engine, engine->denial, engine_error(status));
    put_event(engine, ENGINE_DENIED);
}

/* Returns the number of failed attempts before this one. */
static unsigned count_attempts(struct engine *engine, bool first, usec_t now)
{
    if (first && usec_sub(now, engine->attempt_at) >= BRIEF_USEC)
        engine->n_attempts = 0;
    else if (engine->n_attempts < RECONNECT_SHIFT_MAX)
        engine->n_attempts++;
    return engine->n_attempts;
}

/* Doubles the pause with each attempt, and shortens it at random, so that clients do not all
 * connect at the same time. `attempts` is 1 after a connection was lost. */
static int64_t reconnect_delay(natsConnection *connection, int attempts, void *userdata)
{
    struct engine *engine = userdata;
    const usec_t now = clock_now();
    int64_t delay = (int64_t)RECONNECT_MIN_MS << count_attempts(engine, attempts <= 1, now);

    if (note_refusal(engine, connection))
        put_event(engine, ENGINE_REFUSED);
    if (delay > RECONNECT_MAX_MS)
        delay = RECONNECT_MAX_MS;
    delay -= (int64_t)(now % (usec_t)(delay / 2));
    engine->attempt_at = now + (usec_t)delay * USEC_PER_MSEC;
    return delay;
}

/* ---- on the main loop ---- */

static natsStatus set_handlers(natsOptions *options, struct engine *engine)
{
    natsStatus s = natsOptions_SetMaxReconnect(options, -1);

    if (s == NATS_OK)
        s = natsOptions_SetCustomReconnectDelay(options, reconnect_delay, engine);
    if (s == NATS_OK)
        s = natsOptions_SetReconnectedCB(options, on_connected, engine);
    if (s == NATS_OK)
        s = natsOptions_SetDisconnectedCB(options, on_disconnected, engine);
    if (s == NATS_OK)
        s = natsOptions_SetClosedCB(options, on_closed, engine);
    if (s == NATS_OK)
        s = natsOptions_SetErrorHandler(options, on_error, engine);
    return s;
}

static natsStatus engine_configure(struct engine *engine)
{
    natsStatus s = engine_options(&engine->options, engine->config, &engine->secure);

    engine->guarded = engine->secure;
    if (s == NATS_OK && !engine->secure)
        s = transport_set(&engine->transport, engine->options);
    return s == NATS_OK ? set_handlers(engine->options, engine) : s;
}

/* Whether libnats' threads deliver the messages of the channel. */
static bool is_threaded(const struct engine *engine, enum engine_channel channel)
{
    return engine->secure || channel == ENGINE_GUARDED;
}

/* No limits for libnats: requests bound what arrives. */
static natsStatus subscribe(struct engine *engine, enum engine_channel channel, const char *pattern)
{
    struct engine_subscription *subscription = &engine->subscriptions[channel];
    natsSubscription **ret = &subscription->subscription;
    char subject[128];
    natsStatus s;

    *ret = NULL;
    (void)snprintf(subject, sizeof(subject), "%s.%s", (const char *)engine->inbox, pattern);
    if (is_threaded(engine, channel))
        s = natsConnection_Subscribe(ret, engine->connection, subject, on_message, subscription);
    else
        s = natsConnection_SubscribeSync(ret, engine->connection, subject);
    return s == NATS_OK ? natsSubscription_SetPendingLimits(*ret, -1, -1) : s;
}

/* From now on, requested messages arrive on this channel. */
static natsStatus listen_on(struct engine *engine, enum engine_channel channel)
{
    char pattern[32];

    (void)snprintf(engine->prefix, sizeof(engine->prefix), "m%u.", ++engine->n_prefixes);
    (void)snprintf(pattern, sizeof(pattern), "%s*", engine->prefix);
    natsSubscription_Destroy(engine->subscriptions[channel].subscription);
    return subscribe(engine, channel, pattern);
}

static natsStatus listen_again(struct engine *engine)
{
    return listen_on(engine, engine->guarded ? ENGINE_GUARDED : ENGINE_MESSAGES);
}

static natsStatus engine_subscribe(struct engine *engine)
{
    natsStatus s = natsInbox_Create(&engine->inbox);

    for (int i = 0; i < _ENGINE_CHANNEL_N; i++)
        engine->subscriptions[i] =
            (struct engine_subscription){engine, (enum engine_channel)i, NULL};
    if (s == NATS_OK)
        s = subscribe(engine, ENGINE_CONSUMER, ENGINE_CONSUMER_TOKEN "*");
    if (s == NATS_OK)
        s = subscribe(engine, ENGINE_STATE, ENGINE_STATE_TOKEN);
    if (s == NATS_OK)
        s = subscribe(engine, ENGINE_PUBLISHED, ENGINE_PUBLISHED_TOKEN "*");
    if (s == NATS_OK)
        s = subscribe(engine, ENGINE_DONE, ENGINE_DONE_TOKEN "*");
    return s == NATS_OK ? listen_again(engine) : s;
}

int engine_init(struct engine *engine, const struct config *config)
{
    char sentence[ENGINE_SENTENCE_SIZE];
    natsStatus s;
    int r;

    *engine = (struct engine){.config = config, .lock = PTHREAD_MUTEX_INITIALIZER};
    r = engine_arrivals_init(&engine->arrivals);
    transport_init(&engine->transport, engine->arrivals.fd);
    if (r < 0)
        return r;
    s = engine_configure(engine);
    if (s == NATS_OK)
        s = engine_connect_early(&engine->connection, engine->options, on_connected, engine);
    if (s == NATS_OK)
        put_event(engine, ENGINE_CONNECTED);
    if (s == NATS_NOT_YET_CONNECTED)
        log_warning("no NATS server answers at URL= or $NATS_URL; tries again");
    if (s == NATS_OK || s == NATS_NOT_YET_CONNECTED)
        s = engine_subscribe(engine);
    if (s == NATS_OK)
        return 0;
    engine_explain(sentence, config, s, engine_error(s));
    log_error("%s", sentence);
    return -EIO;
}

static bool take_message(const struct engine_subscription *from, struct engine_arrival *ret)
{
    natsMsg *message = NULL;
    uint64_t n = 0;
    natsStatus s;

    if (is_threaded(from->engine, from->channel) || !from->subscription ||
        natsSubscription_QueuedMsgs(from->subscription, &n) != NATS_OK || n == 0)
        return false;
    s = natsSubscription_NextMsg(&message, from->subscription, 0);
    if (s != NATS_OK && s != NATS_NO_RESPONDERS)
        return false;
    *ret = (struct engine_arrival){s == NATS_OK ? ENGINE_MESSAGE : ENGINE_UNANSWERED, from->channel,
                                   message};
    return true;
}

void engine_deinit(struct engine *engine)
{
    struct engine_arrival what;

    for (size_t i = 0; i < _ENGINE_CHANNEL_N; i++)
        natsSubscription_Destroy(engine->subscriptions[i].subscription);
    natsConnection_Destroy(engine->connection);
    natsOptions_Destroy(engine->options);
    natsInbox_Destroy(engine->inbox);
    while (engine_arrivals_take(&engine->arrivals, &what))
        natsMsg_Destroy(what.message);
    /* From then on no callback runs, and no message can be destroyed: one that a last callback has
     * brought is left to the end of the process. */
    nats_CloseAndWait((int64_t)(FLUSH_USEC / USEC_PER_MSEC));
    while (engine_arrivals_take(&engine->arrivals, &what))
        continue;
    engine_arrivals_deinit(&engine->arrivals);
}

void engine_poll(struct engine *engine, struct pollfd fds[static ENGINE_FDS])
{
    fds[0] = (struct pollfd){.fd = engine->arrivals.fd, .events = POLLIN};
    fds[1] = transport_poll(&engine->transport);
}

static void get_text(struct engine *engine, const char *from, char *text)
{
    pthread_mutex_lock(&engine->lock);
    (void)snprintf(text, ENGINE_SENTENCE_SIZE, "%s", from);
    pthread_mutex_unlock(&engine->lock);
}

void engine_refusal(struct engine *engine, char sentence[static ENGINE_SENTENCE_SIZE])
{
    get_text(engine, engine->refusal, sentence);
}

void engine_denial(struct engine *engine, char text[static ENGINE_SENTENCE_SIZE])
{
    get_text(engine, engine->denial, text);
}

void engine_receive(struct engine *engine, const struct pollfd fds[static ENGINE_FDS])
{
    eventfd_t ignored;

    if (fds[0].revents != 0 && eventfd_read(engine->arrivals.fd, &ignored) == 0)
        engine->has_arrivals = true;
    if (fds[1].revents & (POLLIN | POLLHUP | POLLERR)) {
        natsConnection_ProcessReadEvent(engine->connection);
        engine->has_messages = true;
    }
}

bool engine_next(struct engine *engine, struct engine_arrival *ret)
{
    if (engine->has_arrivals && engine_arrivals_take(&engine->arrivals, ret))
        return true;
    engine->has_arrivals = false;
    for (size_t i = 0; engine->has_messages && i < _ENGINE_CHANNEL_N; i++)
        if (take_message(&engine->subscriptions[i], ret))
            return true;
    engine->has_messages = false;
    return false;
}

usec_t engine_send(struct engine *engine, usec_t now)
{
    return transport_send(&engine->transport, engine->connection, now);
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

bool engine_is_full(const struct engine *engine)
{
    return natsConnection_Buffered(engine->connection) >= UNSENT_MAX;
}

/* Without memory, libnats may have buffered only the beginning of a message. The server would take
 * the next bytes for its rest, and later ones for commands, so the connection ends. Returns 0 or
 * -errno. */
static int note_sent(struct engine *engine, natsStatus s)
{
    if (s == NATS_NO_MEMORY)
        transport_end(&engine->transport);
    return error_of(s);
}

int engine_publish(struct engine *engine, natsMsg *message)
{
    if (engine_is_full(engine))
        return -ENOBUFS;
    return note_sent(engine, natsConnection_PublishMsg(engine->connection, message));
}

int engine_request(struct engine *engine, const char *subject, const char *token, const char *text)
{
    char reply[128];

    if (engine_is_full(engine))
        return -ENOBUFS;
    (void)snprintf(reply, sizeof(reply), "%s.%s", (const char *)engine->inbox, token);
    return note_sent(engine,
                     natsConnection_PublishRequestString(engine->connection, subject, reply, text));
}

void engine_acknowledge(struct engine *engine, natsMsg *message, const char *text)
{
    if (!engine_is_full(engine))
        (void)note_sent(engine, natsConnection_PublishString(engine->connection,
                                                             natsMsg_GetReply(message), text));
}

void engine_drain(struct engine *engine)
{
    for (int i = ENGINE_MESSAGES; i <= ENGINE_GUARDED; i++)
        if (engine->subscriptions[i].subscription)
            (void)natsSubscription_Drain(engine->subscriptions[i].subscription);
}

void engine_listen(struct engine *engine)
{
    /* Messages that were on their way have arrived, or will be delivered again. */
    if (listen_again(engine) != NATS_OK)
        log_warning("NATS: no messages can be received: out of memory, or the connection is over");
}

void engine_forget(struct engine *engine)
{
    for (int i = ENGINE_MESSAGES; i <= ENGINE_GUARDED; i++) {
        natsSubscription_Destroy(engine->subscriptions[i].subscription);
        engine->subscriptions[i].subscription = NULL;
    }
    engine_arrivals_forget(&engine->arrivals);
    engine_listen(engine);
}

void engine_guard(struct engine *engine, bool guarded)
{
    if (engine->secure || engine->guarded == guarded)
        return;
    engine->guarded = guarded;
    engine_listen(engine);
}

void engine_leave(struct engine *engine)
{
    transport_end(&engine->transport);
}

void engine_flush(struct engine *engine)
{
    if (transport_poll(&engine->transport).fd >= 0)
        transport_finish(&engine->transport, engine->connection, clock_deadline(FLUSH_USEC));
    else
        (void)natsConnection_FlushTimeout(engine->connection, FLUSH_USEC / USEC_PER_MSEC);
}

/* A URL may contain a password, and one from a server may contain anything. */
void engine_server(const struct engine *engine, char ret[static ENGINE_SERVER_SIZE])
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789.:-_[]";
    char url[512];
    const char *host;

    *ret = '\0';
    if (natsConnection_GetConnectedUrl(engine->connection, url, sizeof(url)) != NATS_OK)
        return;
    host = strrchr(url, '@');
    if (!host)
        host = strrchr(url, '/');
    host = host ? host + 1 : url;
    if (host[strspn(host, allowed)] == '\0' && strlen(host) < ENGINE_SERVER_SIZE)
        strcpy(ret, host);
}

size_t engine_max_payload(const struct engine *engine)
{
    const int64_t max = natsConnection_GetMaxPayload(engine->connection);

    return max > 0 ? (size_t)max : SIZE_MAX;
}

uint64_t engine_new_secret(void)
{
    uint64_t secret = clock_now();

    (void)!getrandom(&secret, sizeof(secret), GRND_NONBLOCK); /* fails only early in the boot */
    return secret;
}
