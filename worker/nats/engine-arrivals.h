/* SPDX-License-Identifier: MIT */
#pragma once

/* A queue of events from libnats' threads for the main loop. Its eventfd becomes readable when the
 * queue is no longer empty. */

#include "shared/base/list.h"
#include <nats/nats.h>
#include <pthread.h>
#include <stdbool.h>

enum engine_channel {
    ENGINE_CONSUMER,  /* answers about the consumer */
    ENGINE_STATE,     /* answers to the reports of report.h */
    ENGINE_PUBLISHED, /* confirmations of publication.h */
    ENGINE_DONE,      /* confirmations of acknowledgements */
    ENGINE_MESSAGES,  /* messages of the stream, and errors of requests for them */
    ENGINE_GUARDED,   /* like ENGINE_MESSAGES: while guarded, and always with TLS */
    _ENGINE_CHANNEL_N,
};

enum engine_event {
    ENGINE_CONNECTED,    /* for the first time or again */
    ENGINE_DISCONNECTED, /* libnats tries to connect again */
    ENGINE_REFUSED,      /* engine_refusal() has changed while it tries */
    ENGINE_CLOSED,       /* libnats has given up because of engine_refusal() */
    ENGINE_DENIED,       /* engine_denial() is new */
    ENGINE_MESSAGE,      /* a message has arrived on a channel */
    ENGINE_UNANSWERED,   /* a request of this channel has no responder */
};

struct engine_arrival {
    enum engine_event event;
    enum engine_channel channel; /* for the last two events */
    natsMsg *message;            /* NULL unless ENGINE_MESSAGE */
};

struct engine_arrivals {
    int fd;
    pthread_mutex_t lock;
    struct list list; /* guarded by it, as what follows */
    unsigned n;
    size_t bytes;
};

/* Returns 0 or -errno. */
int engine_arrivals_init(struct engine_arrivals *arrivals);
/* Call it when the queue is empty, and no thread adds to it. */
void engine_arrivals_deinit(struct engine_arrivals *arrivals);

/* Adds an event. Takes over the message; destroys it if there is no room. */
void engine_arrivals_put(struct engine_arrivals *arrivals, struct engine_arrival what);
/* Returns true and the first event, whose message the caller destroys. */
bool engine_arrivals_take(struct engine_arrivals *arrivals, struct engine_arrival *ret);
/* Destroys all messages of streams. */
void engine_arrivals_forget(struct engine_arrivals *arrivals);
