/* SPDX-License-Identifier: MIT */
#pragma once

/* The connection to NATS. libnats' threads only note events, put messages into a queue, and ring an
 * eventfd. Everything else is called by the main loop.
 *
 * The main loop also reads and writes the socket, and takes messages, which costs the least CPU
 * time; with TLS, libnats' threads do. They also take messages after the first answer that a
 * request has no responder: otherwise libnats (3.4 to 3.9) reports that without saying which
 * request, and does so for any message that a sender has made look like this answer.
 *
 * Answers come to an inbox of this connection: a request names a token, and its answer has the
 * subject INBOX.TOKEN. Requests for messages of a stream have tokens that begin with
 * engine_messages(); the messages come with the subjects that they were published to.
 */

#include "shared/base/buffer.h"
#include "worker/nats/config.h"
#include "worker/nats/engine-connection.h"
#include "worker/nats/transport.h"
#include <jansson.h>
#include <nats/nats.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>

#define ENGINE_FDS 2

/* What tokens begin with; a number follows, except in ENGINE_STATE. */
#define ENGINE_CONSUMER  'c' /* questions about the consumer */
#define ENGINE_STATE     's' /* reports of report.h */
#define ENGINE_PUBLISHED 'p' /* publications, and questions about them */
#define ENGINE_DONE      'a' /* acknowledgements */
#define ENGINE_MESSAGES  'm' /* requests for messages */

/* Events are handled in this order: a connection may be lost and replaced between two calls of
 * engine_events(). */
enum engine_event {
    ENGINE_DISCONNECTED = 1 << 0, /* libnats tries to connect again */
    ENGINE_CONNECTED = 1 << 1,    /* for the first time or again */
    ENGINE_REFUSED = 1 << 2,      /* `refusal` has changed while it tries */
    ENGINE_CLOSED = 1 << 3,       /* libnats has given up because of `refusal` */
    ENGINE_DENIED = 1 << 4,       /* `denial` is new */
    ENGINE_RENEWED = 1 << 5,      /* requests from before are void */
};

/* Events since the engine was last asked. */
struct engine_notes {
    unsigned events;                    /* enum engine_event */
    char refusal[ENGINE_SENTENCE_SIZE]; /* why the last server that answered refused the connection;
                                           "" = none answered */
    char denial[ENGINE_SENTENCE_SIZE];  /* the first permission that this user lacks on this
                                           connection; requests without it are not answered */
};

/* Messages that have arrived. */
struct engine_queue {
    struct buffer messages; /* pointers */
    size_t n_taken;
    size_t bytes; /* of data */
};

struct engine {
    const struct config *config;
    natsOptions *options;
    natsConnection *connection;
    natsInbox *inbox;
    natsSubscription *answers;
    char prefix[24];     /* of the tokens of requests for messages */
    unsigned n_prefixes; /* each engine_listen() takes a new one */
    bool connected;      /* according to the events that were handled */
    bool secure;         /* TLS: libnats' threads read and write the socket */
    bool threaded;       /* libnats' threads take messages */
    struct transport transport;
    struct engine_queue taken; /* by the main loop */
    struct engine_notes seen;
    int fd; /* an eventfd: there are events or messages */

    /* Used on libnats' thread that connects. */
    usec_t attempt_at;   /* when the last attempt to connect again begins */
    unsigned n_attempts; /* that failed */
    bool denied;         /* `denial` is of this connection */

    /* Guarded by `lock`. */
    pthread_mutex_t lock;
    natsSubscription *messages; /* NULL = none are taken */
    struct engine_queue arrived;
    struct engine_notes notes;
};

/* Why a request has no responder. */
#define ENGINE_NO_JETSTREAM "the server has no JetStream, or is electing a leader"

/* Begins to connect. Returns 0, or -errno after it has logged why it cannot. The caller calls
 * engine_deinit() in either case. */
int engine_init(struct engine *engine, const struct config *config);
void engine_deinit(struct engine *engine);

/* Fills in what to wait for. */
void engine_poll(struct engine *engine, struct pollfd fds[static ENGINE_FDS]);
/* If poll(2) has found something, reads it. */
void engine_receive(struct engine *engine, const struct pollfd fds[static ENGINE_FDS]);

/* Sees what has happened since the last call, and returns the events. */
unsigned engine_see(struct engine *engine);

/* Returns the next message or answer, which the caller destroys; NULL = none. */
natsMsg *engine_next(struct engine *engine);
/* The token of an answer; NULL = a message of a stream. */
const char *engine_token(const struct engine *engine, natsMsg *message);
/* Returns an answer as JSON, which the caller frees; NULL = it is none. */
json_t *engine_json(natsMsg *answer);
/* Returns the number of the error in an answer of JetStream, 0 if it is none, and what is
 * wrong. */
json_int_t engine_json_error(const json_t *answer, const char **ret_text);

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
 * way still arrive. */
void engine_drain(struct engine *engine);
/* Starts the delivery again. Requests from before are void, and messages on their way are
 * delivered again. */
void engine_listen(struct engine *engine);
/* Like engine_listen(), but also discards what engine_next() has not returned. */
void engine_forget(struct engine *engine);

/* Disconnects from this server, to connect to the next one. Does nothing with TLS, where libnats
 * has the socket. */
void engine_leave(struct engine *engine);

/* Returns a number that cannot be guessed, even from earlier ones. */
uint64_t engine_new_secret(void);
