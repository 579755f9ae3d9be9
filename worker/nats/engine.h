/* SPDX-License-Identifier: MIT */
#pragma once

/* The connection to NATS. libnats' threads only put events into a queue and ring an eventfd.
 * Everything else is called by the main loop, which also reads and writes the socket; with TLS,
 * libnats' threads read and write it.
 *
 * Answers come to an inbox of this connection: a request names a token, and its answer has the
 * subject INBOX.TOKEN. The beginning of the token is its channel. That of a request for messages of
 * a stream is engine_messages(); they come with the subjects that they were published to.
 */

#include "worker/nats/config.h"
#include "worker/nats/engine-arrivals.h"
#include "worker/nats/engine-connection.h"
#include "worker/nats/transport.h"
#include <nats/nats.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>

#define ENGINE_FDS 2

#define ENGINE_SERVER_SIZE 80u

/* Tokens. A number follows a dot; in ENGINE_PUBLISHED_TOKEN, a letter comes before it
 * (publication.c). */
#define ENGINE_CONSUMER_TOKEN  "c."
#define ENGINE_STATE_TOKEN     "s"
#define ENGINE_PUBLISHED_TOKEN "p."
#define ENGINE_DONE_TOKEN      "a."

struct engine_subscription {
    struct engine *engine;
    enum engine_channel channel;
    natsSubscription *subscription;
};

struct engine {
    const struct config *config;
    natsOptions *options;
    natsConnection *connection;
    struct engine_subscription subscriptions[_ENGINE_CHANNEL_N];
    natsInbox *inbox;
    char prefix[24];     /* of the tokens of requests for messages */
    unsigned n_prefixes; /* each engine_listen() takes a new one */
    bool connected;      /* according to the events that were handled */
    bool guarded;        /* see engine_guard() */
    bool secure;         /* TLS: libnats' threads read and write the socket */
    struct transport transport;
    struct engine_arrivals arrivals;
    bool has_arrivals; /* there may be some */
    bool has_messages; /* the subscriptions may have some */
    usec_t attempt_at; /* when the last attempt to connect again begins; like the next two, used on
                          libnats' thread only */
    unsigned n_attempts; /* that failed */
    bool denied;         /* `denial` is of this connection */
    pthread_mutex_t lock;
    char refusal[ENGINE_SENTENCE_SIZE]; /* guarded by `lock`, like the next */
    char denial[ENGINE_SENTENCE_SIZE];
};

/* Why a request has no responder. */
#define ENGINE_NO_JETSTREAM "the server has no JetStream, or is electing a leader"

/* Begins to connect. Returns 0, or -errno after it has logged why it cannot. The caller calls
 * engine_deinit() in either case. */
int engine_init(struct engine *engine, const struct config *config);
void engine_deinit(struct engine *engine);

/* Fills in what to wait for. */
void engine_poll(struct engine *engine, struct pollfd fds[static ENGINE_FDS]);
/* Why the last server that answered refused the connection; "" = none answered. */
void engine_refusal(struct engine *engine, char sentence[static ENGINE_SENTENCE_SIZE]);
/* The first permission that this user lacks on this connection. Requests without permission are not
 * answered. */
void engine_denial(struct engine *engine, char text[static ENGINE_SENTENCE_SIZE]);

/* If poll(2) has found something, reads it for engine_next(). */
void engine_receive(struct engine *engine, const struct pollfd fds[static ENGINE_FDS]);

/* Sends everything that was published, requested and acknowledged since the last call, without
 * waiting. Call it once in each turn of the loop. Returns when to call it again at the latest. */
usec_t engine_send(struct engine *engine, usec_t now);
/* Returns whether data of an earlier turn still waits to be sent. */
static inline bool engine_is_behind(const struct engine *engine)
{
    return engine->transport.stalled_at > 0;
}

/* Returns whether so much data waits to be sent that no more is accepted. */
bool engine_is_full(const struct engine *engine);

/* Returns true and the next event, whose message the caller destroys; false if there is none. */
bool engine_next(struct engine *engine, struct engine_arrival *ret);

/* The token of an answer that came to the inbox; NULL = a message of a stream. */
const char *engine_token(const struct engine *engine, natsMsg *message);

/* Sends a request whose answer comes with that token. Returns 0 or -errno. */
int engine_request(struct engine *engine, const char *subject, const char *token, const char *text);
/* Like engine_request(), but with headers. Does not take over the message. -EMSGSIZE: it is above
 * the server's limit; see engine_message(). */
int engine_publish(struct engine *engine, natsMsg *message);
/* Makes a message for engine_publish(); without a token (NULL), it asks for no answer. Returns NULL
 * without memory. */
natsMsg *engine_message(const struct engine *engine, const char *subject, const char *token,
                        const void *data, size_t size);

/* Sends one of JetStream's acknowledgements, such as "-NAK". If it is lost, the message is
 * delivered again. */
void engine_acknowledge(struct engine *engine, natsMsg *message, const char *text);

/* The beginning of tokens of requests for messages, with a "." at its end. */
static inline const char *engine_messages(const struct engine *engine)
{
    return engine->prefix;
}

/* Stops the delivery of messages, so that messages given back go to other machines. Those on their
 * way still arrive. Idempotent. */
void engine_drain(struct engine *engine);
/* Starts the delivery again. Requests from before are void. */
void engine_listen(struct engine *engine);
/* Like engine_listen(), but also discards messages that are on their way, or that engine_next() has
 * not returned. */
void engine_forget(struct engine *engine);

/* A sender can make a message look like the answer "no responders". Without TLS, libnats (3.4
 * to 3.9) destroys such a message and reports the answer, so ENGINE_UNANSWERED on ENGINE_MESSAGES
 * may be either. While guarded, libnats' threads deliver new messages, which takes more CPU time,
 * and ENGINE_UNANSWERED on ENGINE_GUARDED is always the answer. */
void engine_guard(struct engine *engine, bool guarded);

/* Disconnects from this server, to connect to the next one. Does nothing with TLS, where libnats
 * has the socket. */
void engine_leave(struct engine *engine);

/* Waits, at most for a second, until the server has everything that was sent. Nothing can be sent
 * or received afterwards. */
void engine_flush(struct engine *engine);

/* The host and the port of the server to which it is connected; "" = unknown. */
void engine_server(const struct engine *engine, char ret[static ENGINE_SERVER_SIZE]);

/* The largest message that the server takes, bytes. */
size_t engine_max_payload(const struct engine *engine);

/* Returns a number that cannot be guessed, even from earlier ones. */
uint64_t engine_new_secret(void);
