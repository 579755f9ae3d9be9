/* SPDX-License-Identifier: MIT */
#pragma once

/* The consumer from which messages come: whether it exists and answers, how long it waits for
 * acknowledgements, and whether it delivers what it has. */

#include "worker/nats/config.h"
#include "worker/nats/engine.h"
#include "worker/nats/puller.h"
#include <stdbool.h>

/* Signs of life of a message within AckWait. */
#define CONSUMER_BEATS 3

struct consumer_handler {
    /* What is to be said of it has changed. */
    void (*changed)(void *userdata);
    /* It is there, after it was not if `is_new`. `period`: between two signs of life of a message.
     */
    void (*found)(void *userdata, usec_t period, bool is_new, usec_t now);
};

struct consumer {
    struct engine *engine;
    const struct config *config;
    const struct consumer_handler *handler;
    void *userdata;
    struct puller puller;
    bool there;        /* and its AckWait is known */
    char problem[128]; /* with it, that was logged last */
    const char *stall; /* why it delivers nothing though it has messages; NULL = it does not */
    bool suspected;    /* of that, since the last answer about it */
    usec_t ask_at;     /* about it */
    usec_t queried_at; /* the first of these questions that has no answer yet; 0 = none */
    uint64_t secret;   /* their answers have it */
    usec_t asked_at;   /* the first request to it since it has answered; 0 = none */
    unsigned n_left;   /* servers in a row that were left because it did not answer */
};

/* All but `consumer` are borrowed. */
void consumer_init(struct consumer *consumer, struct engine *engine, const struct config *config,
                   const struct consumer_handler *handler, void *userdata);

/* The connection to the engine is new, or lost. */
void consumer_connect(struct consumer *consumer, usec_t now);
void consumer_disconnect(struct consumer *consumer);

/* Asks the server about it when it is time, and leaves a server over which it does not answer.
 * Returns when to call it again. */
usec_t consumer_serve(struct consumer *consumer, usec_t now);
/* Asks about it within some seconds, as something is odd. */
void consumer_check_soon(struct consumer *consumer, usec_t now);

/* An answer about it with this token; or to somebody else, who can have the server answer here. */
void consumer_note_answer(struct consumer *consumer, const char *token, natsMsg *answer,
                          usec_t now);
/* Nobody is there to answer. */
void consumer_note_unanswered(struct consumer *consumer, usec_t now);
/* It has answered something. */
void consumer_note_answered(struct consumer *consumer);

/* Requests up to `room` messages. Requests may end without any: asks then whether there are some,
 * and nudges a consumer that keeps them. Returns when to call it again. */
usec_t consumer_pull(struct consumer *consumer, uint64_t room, usec_t now);
/* A message has come. */
void consumer_end_stall(struct consumer *consumer);
