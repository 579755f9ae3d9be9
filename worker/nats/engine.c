/* SPDX-License-Identifier: MIT */
#include "worker/nats/engine.h"

#include "shared/base/cleanup.h"
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
#define CLOSE_MS   1000

/* The most bytes that wait for a slow socket. Further ones are not sent now; their senders repeat
 * them. */
#define UNSENT_MAX (64 << 20)

/* Beyond these limits of what waits for the main loop, messages are dropped; the server delivers
 * each again. */
#define ARRIVED_MAX       ((size_t)65536 * sizeof(natsMsg *))
#define ARRIVED_BYTES_MAX ((size_t)64 << 20)

/* ---- on libnats' threads ---- */

static void note(struct engine *engine, enum engine_event event)
{
    pthread_mutex_lock(&engine->lock);
    if (event == ENGINE_DISCONNECTED)
        engine->notes.events &= ~(unsigned)ENGINE_CONNECTED;
    engine->notes.events |= event;
    pthread_mutex_unlock(&engine->lock);
    (void)eventfd_write(engine->fd, 1);
}

/* Takes over the message, unless it returns false. Called with the lock held. */
static bool add(struct engine_queue *queue, natsMsg *message)
{
    struct buffer *messages = &queue->messages;

    if (messages->size >= ARRIVED_MAX || queue->bytes >= ARRIVED_BYTES_MAX)
        return false;
    buffer_add(messages, (const char *)&message, sizeof(natsMsg *));
    if (messages->failed) {
        messages->failed = false;
        return false;
    }
    queue->bytes += (size_t)natsMsg_GetDataLength(message);
    return true;
}

/* A subscription that has ended may still bring a message. */
static void on_message(natsConnection *connection, natsSubscription *subscription, natsMsg *message,
                       void *userdata)
{
    struct engine *engine = userdata;
    bool first, added;

    pthread_mutex_lock(&engine->lock);
    first = engine->arrived.messages.size == 0;
    added = (subscription == engine->answers || subscription == engine->messages) &&
            add(&engine->arrived, message);
    pthread_mutex_unlock(&engine->lock);
    if (!added)
        natsMsg_Destroy(message);
    else if (first) /* the main loop takes all of them */
        (void)eventfd_write(engine->fd, 1);
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
    return set_text(engine, engine->notes.refusal, sentence);
}

static void on_connected(natsConnection *connection, void *userdata)
{
    struct engine *engine = userdata;

    engine->denied = false;
    (void)set_text(engine, engine->notes.refusal, "");
    note(engine, ENGINE_CONNECTED);
}

static void on_disconnected(natsConnection *connection, void *userdata)
{
    note(userdata, ENGINE_DISCONNECTED);
}

static void on_closed(natsConnection *connection, void *userdata)
{
    (void)note_refusal(userdata, connection);
    note(userdata, ENGINE_CLOSED);
}

/* Without a handler, libnats prints errors to standard error. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status,
                     void *userdata)
{
    struct engine *engine = userdata;

    if (status != NATS_NOT_PERMITTED || engine->denied)
        return;
    engine->denied = true;
    (void)set_text(engine, engine->notes.denial, engine_error(status));
    note(engine, ENGINE_DENIED);
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
        note(engine, ENGINE_REFUSED);
    if (delay > RECONNECT_MAX_MS)
        delay = RECONNECT_MAX_MS;
    delay -= (int64_t)(now % (usec_t)(delay / 2));
    engine->attempt_at = now + (usec_t)delay * USEC_PER_MSEC;
    return delay;
}

/* ---- on the main loop ---- */

static natsStatus engine_configure(struct engine *engine)
{
    natsStatus s = engine_options(&engine->options, engine->config, &engine->secure);

    if (s == NATS_OK && !engine->secure)
        s = transport_set(&engine->transport, engine->options);
    engine->threaded = engine->secure;
    if (s != NATS_OK)
        return s;
    (void)natsOptions_SetMaxReconnect(engine->options, -1);
    (void)natsOptions_SetCustomReconnectDelay(engine->options, reconnect_delay, engine);
    (void)natsOptions_SetReconnectedCB(engine->options, on_connected, engine);
    (void)natsOptions_SetDisconnectedCB(engine->options, on_disconnected, engine);
    (void)natsOptions_SetClosedCB(engine->options, on_closed, engine);
    return natsOptions_SetErrorHandler(engine->options, on_error, engine);
}

/* No limits for libnats: requests bound what arrives. */
static natsStatus subscribe(struct engine *engine, natsSubscription **ret, const char *pattern)
{
    natsSubscription *subscription = NULL;
    char subject[128];
    natsStatus s;

    (void)snprintf(subject, sizeof(subject), "%s.%s", (const char *)engine->inbox, pattern);
    if (engine->threaded)
        s = natsConnection_Subscribe(&subscription, engine->connection, subject, on_message,
                                     engine);
    else
        s = natsConnection_SubscribeSync(&subscription, engine->connection, subject);
    pthread_mutex_lock(&engine->lock);
    *ret = subscription;
    pthread_mutex_unlock(&engine->lock);
    return s == NATS_OK ? natsSubscription_SetPendingLimits(subscription, -1, -1) : s;
}

static void unsubscribe(struct engine *engine, natsSubscription **subscription)
{
    natsSubscription *ended = *subscription;

    pthread_mutex_lock(&engine->lock);
    *subscription = NULL;
    pthread_mutex_unlock(&engine->lock);
    natsSubscription_Destroy(ended);
}

static natsStatus listen_again(struct engine *engine)
{
    char pattern[32];

    unsubscribe(engine, &engine->messages);
    (void)snprintf(engine->prefix, sizeof(engine->prefix), "%c%u.", ENGINE_MESSAGES,
                   ++engine->n_prefixes);
    (void)snprintf(pattern, sizeof(pattern), "%s*", engine->prefix);
    return subscribe(engine, &engine->messages, pattern);
}

static natsStatus subscribe_all(struct engine *engine)
{
    natsStatus s;

    unsubscribe(engine, &engine->answers);
    s = subscribe(engine, &engine->answers, "*");
    return s == NATS_OK ? listen_again(engine) : s;
}

int engine_init(struct engine *engine, const struct config *config)
{
    char sentence[ENGINE_SENTENCE_SIZE];
    natsStatus s;

    *engine = (struct engine){.config = config,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (engine->fd < 0)
        return -errno;
    transport_init(&engine->transport, engine->fd);
    s = engine_configure(engine);
    if (s == NATS_OK)
        s = engine_connect_early(&engine->connection, engine->options, on_connected, engine);
    if (s == NATS_OK)
        note(engine, ENGINE_CONNECTED);
    if (s == NATS_NOT_YET_CONNECTED)
        log_warning("no NATS server answers at URL= or $NATS_URL; tries again");
    if (s == NATS_OK || s == NATS_NOT_YET_CONNECTED)
        s = natsInbox_Create(&engine->inbox);
    if (s == NATS_OK)
        s = subscribe_all(engine);
    if (s == NATS_OK)
        return 0;
    engine_explain(sentence, config, s, engine_error(s));
    log_error("%s", sentence);
    return -EIO;
}

/* Swaps the queues, so that libnats' threads wait only for a moment. Returns false if nothing has
 * arrived. */
static bool take(struct engine *engine)
{
    engine->taken.messages.size = 0;
    engine->taken.n_taken = engine->taken.bytes = 0;
    pthread_mutex_lock(&engine->lock);
    SWAP(engine->taken, engine->arrived);
    pthread_mutex_unlock(&engine->lock);
    return engine->taken.messages.size > 0;
}

static natsMsg *next_of_queue(struct engine *engine)
{
    struct engine_queue *queue = &engine->taken;

    if (queue->n_taken * sizeof(natsMsg *) == queue->messages.size && !take(engine))
        return NULL;
    return ((natsMsg **)(void *)queue->messages.bytes)[queue->n_taken++];
}

static bool has_messages(natsSubscription *subscription)
{
    uint64_t n = 0;

    return subscription && natsSubscription_QueuedMsgs(subscription, &n) == NATS_OK && n > 0;
}

/* Moves what has arrived for a subscription that ends. */
static void keep_messages(struct engine *engine, natsSubscription *subscription)
{
    while (has_messages(subscription)) {
        natsMsg *message = NULL;

        (void)natsSubscription_NextMsg(&message, subscription, 0);
        if (message && !add(&engine->taken, message))
            natsMsg_Destroy(message);
    }
}

static natsMsg *next_of(struct engine *engine, natsSubscription *subscription)
{
    natsMsg *message = NULL;

    if (engine->threaded || !has_messages(subscription) ||
        natsSubscription_NextMsg(&message, subscription, 0) != NATS_NO_RESPONDERS)
        return message;
    engine->threaded = true;
    keep_messages(engine, engine->answers);
    keep_messages(engine, engine->messages);
    if (subscribe_all(engine) == NATS_OK)
        note(engine, ENGINE_RENEWED);
    else
        engine_leave(engine);
    return NULL;
}

natsMsg *engine_next(struct engine *engine)
{
    natsMsg *message = next_of(engine, engine->answers);

    if (!message)
        message = next_of(engine, engine->messages);
    return message ? message : next_of_queue(engine);
}

void engine_deinit(struct engine *engine)
{
    natsMsg *message;

    unsubscribe(engine, &engine->messages);
    unsubscribe(engine, &engine->answers);
    natsConnection_Destroy(engine->connection);
    natsOptions_Destroy(engine->options);
    natsInbox_Destroy(engine->inbox);
    while ((message = engine_next(engine)))
        natsMsg_Destroy(message);
    nats_CloseAndWait(CLOSE_MS); /* from then on no callback runs */
    buffer_deinit(&engine->taken.messages);
    buffer_deinit(&engine->arrived.messages);
    engine->fd = close_fd(engine->fd);
}

void engine_poll(struct engine *engine, struct pollfd fds[static ENGINE_FDS])
{
    fds[0] = (struct pollfd){.fd = engine->fd, .events = POLLIN};
    fds[1] = transport_poll(&engine->transport);
}

void engine_receive(struct engine *engine, const struct pollfd fds[static ENGINE_FDS])
{
    eventfd_t ignored;

    if (fds[0].revents != 0)
        (void)eventfd_read(engine->fd, &ignored);
    if (fds[1].revents & (POLLIN | POLLHUP | POLLERR))
        natsConnection_ProcessReadEvent(engine->connection);
}

unsigned engine_see(struct engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    engine->seen = engine->notes;
    engine->notes.events = 0;
    pthread_mutex_unlock(&engine->lock);
    return engine->seen.events;
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

json_t *engine_json(natsMsg *answer)
{
    return json_loadb(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer), 0, NULL);
}

json_int_t engine_json_error(const json_t *answer, const char **ret_text)
{
    const json_t *error = json_object_get(answer, "error");

    *ret_text = json_string_value(json_object_get(error, "description"));
    return json_integer_value(json_object_get(error, "err_code"));
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
    if (engine->messages)
        (void)natsSubscription_Drain(engine->messages);
}

void engine_listen(struct engine *engine)
{
    if (listen_again(engine) != NATS_OK)
        log_warning("NATS: no messages can be received: out of memory, or the connection is over");
}

void engine_forget(struct engine *engine)
{
    natsMsg *message;

    unsubscribe(engine, &engine->messages);
    while ((message = engine_next(engine)))
        natsMsg_Destroy(message);
    engine_listen(engine);
}

void engine_leave(struct engine *engine)
{
    transport_end(&engine->transport);
}

uint64_t engine_new_secret(void)
{
    uint64_t secret = clock_now();

    (void)!getrandom(&secret, sizeof(secret), GRND_NONBLOCK); /* fails only early in the boot */
    return secret;
}
