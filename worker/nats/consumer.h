/* SPDX-License-Identifier: MIT */
#pragma once

/* The consumer from which messages come: whether it exists and answers, how long it waits for
 * acknowledgements, and whether it delivers what it has. */

#include "worker/nats/config.h"
#include "worker/nats/engine.h"
#include "worker/nats/puller.h"
#include <stdbool.h>

/* How often a message in progress is reported within AckWait. */
#define CONSUMER_BEATS 3

struct consumer {
    struct engine *engine;
    const struct config *config;
    struct puller puller;
    bool there;        /* it exists, and its AckWait is known */
    bool is_new;       /* it was not there before; the caller resets this */
    usec_t period;     /* between two reports of a message in progress */
    char problem[128]; /* the last one that was logged */
    const char *stall; /* why it delivers none of its messages; NULL = it does */
    bool suspected;    /* the last answer about it suggests a stall */
    usec_t ask_at;     /* when to ask the server about it */
    usec_t queried_at; /* when the first unanswered question was sent; 0 = none */
    uint64_t secret;   /* the answers to these questions must contain it */
    usec_t asked_at;   /* when the first request without any answer was sent; 0 = none */
    unsigned n_left;   /* how many servers in a row were left because it did not answer */
};

/* All but `consumer` are borrowed. */
void consumer_init(struct consumer *consumer, struct engine *engine, const struct config *config);

/* The connection to the engine is new, or lost. */
void consumer_connect(struct consumer *consumer, usec_t now);
void consumer_disconnect(struct consumer *consumer);

/* Asks the server about it when it is time, and leaves a server over which it does not answer.
 * Returns when to call it again. */
usec_t consumer_serve(struct consumer *consumer, usec_t now);
/* Asks the server about it within some seconds, because something suggests a change. */
void consumer_check_soon(struct consumer *consumer, usec_t now);

/* An answer about it arrived with this token. It may be forged, since others can make the server
 * answer here. */
void consumer_note_answer(struct consumer *consumer, const char *token, natsMsg *answer,
                          usec_t now);

/* Requests up to `room` messages. If requests end without a message, asks whether some are pending,
 * and nudges a consumer that does not deliver them. Returns when to call it again. */
usec_t consumer_pull(struct consumer *consumer, uint64_t room, usec_t now);
/* A message has arrived, or a request has ended with this token and answer. */
void consumer_note_message(struct consumer *consumer);
void consumer_note_status(struct consumer *consumer, const char *token, natsMsg *answer,
                          usec_t now);
