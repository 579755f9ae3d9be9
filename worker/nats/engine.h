/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The connection to NATS. All that libnats' threads do here is to put what has come into a queue
 * and to ring an eventfd. Everything else is called by the main loop only, which also reads and
 * writes the socket; with TLS libnats does, on threads of its own.
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

/* Tokens. A number follows those with a dot, in the third behind a letter of publication.c. */
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
    char prefix[24];     /* of tokens of requests for messages */
    unsigned n_prefixes; /* another one whenever messages are wanted again */
    bool connected;      /* as far as the loop has heard */
    bool guarded;        /* see engine_guard() */
    bool secure;         /* libnats' threads read and write the socket, and bring what comes */
    struct transport transport;
    struct engine_arrivals arrivals;
    bool has_arrivals;   /* something may be in them */
    bool has_messages;   /* something may be in the subscriptions */
    usec_t attempt_at;   /* to connect again, the last one; on libnats' thread only, as the next */
    unsigned n_attempts; /* in vain */
    bool denied;         /* something, since this connection was made; on that thread only */
    pthread_mutex_t lock;
    char refusal[ENGINE_SENTENCE_SIZE]; /* guarded by it, as the next */
    char denial[ENGINE_SENTENCE_SIZE];
};

/* Why nobody is there for a request. */
#define ENGINE_NO_JETSTREAM "the server has no JetStream, or is electing a leader"

/* Begins to connect. Returns 0, or -errno after it has logged why it cannot. The caller calls
 * engine_deinit() in either case. */
int engine_init(struct engine *engine, const struct config *config);
void engine_deinit(struct engine *engine);

/* Fills in what to wait for. */
void engine_poll(struct engine *engine, struct pollfd fds[static ENGINE_FDS]);
/* Why the last server that has answered does not take the connection; "" = none has answered. */
void engine_refusal(struct engine *engine, char sentence[static ENGINE_SENTENCE_SIZE]);
/* The first thing that the server forbids this user on this connection. Nobody answers what is
 * forbidden. */
void engine_denial(struct engine *engine, char text[static ENGINE_SENTENCE_SIZE]);

/* Reads what has come, for engine_next(), if poll(2) has found something. */
void engine_receive(struct engine *engine, const struct pollfd fds[static ENGINE_FDS]);

/* Sends all that was published, requested and acknowledged since the last time, without waiting:
 * once a turn of the loop. Returns when to call it again at the latest. */
usec_t engine_send(struct engine *engine, usec_t now);
/* Whether something of an earlier turn could not be sent yet. */
static inline bool engine_is_behind(const struct engine *engine)
{
    return engine->transport.stalled_at > 0;
}

/* Whether so much waits to be sent that nothing more is taken. */
bool engine_is_full(const struct engine *engine);

/* Returns true and what has come. The caller destroys the message. */
bool engine_next(struct engine *engine, struct engine_arrival *ret);

/* The token of an answer that came to the inbox; NULL = a message of a stream. */
const char *engine_token(const struct engine *engine, natsMsg *message);

/* Sends a request whose answer comes with that token. Returns 0 or -errno. */
int engine_request(struct engine *engine, const char *subject, const char *token, const char *text);
/* Like engine_request(), but with headers. Does not take over the message. -EMSGSIZE: it is above
 * the server's limit; see engine_message(). */
int engine_publish(struct engine *engine, natsMsg *message);
/* Makes such a message; without a token (NULL) nobody answers it. Returns NULL without memory. */
natsMsg *engine_message(const struct engine *engine, const char *subject, const char *token,
                        const void *data, size_t size);

/* Sends one of JetStream's acknowledgements, such as "-NAK", for a message. If it is lost, the
 * message comes again. */
void engine_acknowledge(struct engine *engine, natsMsg *message, const char *text);
/* Like engine_acknowledge(), but the server confirms it with that token. */
void engine_acknowledge_confirmed(struct engine *engine, natsMsg *message, const char *text,
                                  const char *token);

/* How tokens of requests for messages of a stream begin: with a "." at the end. */
static inline const char *engine_messages(const struct engine *engine)
{
    return engine->prefix;
}

/* No messages of a stream are wanted any more: what is given back goes elsewhere. Those that are on
 * their way still come. Idempotent. */
void engine_drain(struct engine *engine);
/* Requests messages of a stream again. Earlier requests do not count any more. */
void engine_listen(struct engine *engine);
/* Like engine_listen(), but also discards messages that are on their way, or have come and were not
 * taken. */
void engine_forget(struct engine *engine);

/* Without TLS, libnats (3.4 to 3.9) destroys a message of a stream that its sender has made look
 * like the answer that nobody is there, and reports that instead: ENGINE_UNANSWERED on
 * ENGINE_MESSAGES may be either. While guarded, libnats' threads bring the messages that are asked
 * for from then on, which takes more CPU time, and that event on ENGINE_GUARDED is what it says. */
void engine_guard(struct engine *engine, bool guarded);

/* Leaves this server for the next one. Does nothing with TLS: then libnats has the socket. */
void engine_leave(struct engine *engine);

/* Waits, at most for a second, until all that was sent is with the server. Nothing can be sent or
 * received afterwards. */
void engine_flush(struct engine *engine);

/* The host and the port of the server to which it is connected; "" = unknown. */
void engine_server(const struct engine *engine, char ret[static ENGINE_SERVER_SIZE]);

/* The largest message that the server takes, bytes. */
size_t engine_max_payload(const struct engine *engine);

/* Returns a number that nobody can guess, even from earlier ones. */
uint64_t engine_new_secret(void);
