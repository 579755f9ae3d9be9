/* SPDX-License-Identifier: MIT */
#pragma once

/* What libnats' threads bring, in a queue for the main loop; an eventfd is readable once something
 * is in it. */

#include "shared/base/list.h"
#include <nats/nats.h>
#include <pthread.h>
#include <stdbool.h>

enum engine_channel {
    ENGINE_CONSUMER,  /* answers about the consumer */
    ENGINE_STATE,     /* answers about what report.h has put */
    ENGINE_PUBLISHED, /* confirmations of publication.h */
    ENGINE_DONE,      /* confirmations of acknowledgements */
    ENGINE_MESSAGES,  /* messages of the stream, and why none come */
    ENGINE_GUARDED,   /* the same while guarded, and always with TLS */
    _ENGINE_CHANNEL_N,
};

enum engine_event {
    ENGINE_CONNECTED,    /* also again, after it was lost */
    ENGINE_DISCONNECTED, /* libnats tries to connect again */
    ENGINE_REFUSED,      /* engine_refusal() has changed while it tries */
    ENGINE_CLOSED,       /* it has given up because of engine_refusal() */
    ENGINE_DENIED,       /* engine_denial() is new */
    ENGINE_MESSAGE,      /* on a channel */
    ENGINE_UNANSWERED,   /* nobody is there for a request of this channel */
};

struct engine_arrival {
    enum engine_event event;
    enum engine_channel channel; /* of the last two events */
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
/* The queue is empty, and no thread puts anything into it. */
void engine_arrivals_deinit(struct engine_arrivals *arrivals);

/* Takes over the message; destroys it if there is no room. */
void engine_arrivals_put(struct engine_arrivals *arrivals, struct engine_arrival what);
/* Returns true and the first one. The caller destroys the message. */
bool engine_arrivals_take(struct engine_arrivals *arrivals, struct engine_arrival *ret);
/* Takes all that comes from streams away, and destroys it. */
void engine_arrivals_forget(struct engine_arrivals *arrivals);
