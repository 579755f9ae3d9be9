/* SPDX-License-Identifier: MIT */
#pragma once

/* The consumer from which messages come: whether it exists and answers, how long it waits for
 * acknowledgements, and whether it delivers what it has. If requests end without a message, it is
 * asked whether some are pending, and nudged if it does not deliver them. */

#include "worker/nats/config.h"
#include "worker/nats/engine.h"
#include <stdbool.h>

/* How often a message in progress is reported within AckWait. */
#define CONSUMER_BEATS 3

struct consumer {
    struct engine *engine;
    const struct config *config;
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

    /* Requests for messages; see consumer-pull.c. */
    usec_t expires;      /* how long a request stays open */
    uint64_t number;     /* of the last request or nudge */
    uint64_t request;    /* the number of the last request */
    uint64_t open;       /* how many messages it may still bring */
    usec_t renew_at;     /* when the next one is sent */
    bool has_brought;    /* it has brought a message */
    unsigned n_empty;    /* how many requests in a row have ended without a message */
    uint64_t n_nudges;   /* how many are left to send */
    uint64_t nudge;      /* the number of the one that is not answered; 0 = none */
    usec_t nudge_until;  /* how long to wait for its answer */
    usec_t gather_until; /* a request for little room waits until then; 0 = there is none */
    usec_t not_before;   /* the time of the next request, after an error */
    unsigned n_problems; /* in a row */
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

/* ---- consumer-pull.c ---- */

/* Requests up to `room` messages if no request is open: immediately if that is a quarter of
 * InFlight=, otherwise after a millisecond, in which more jobs may end. Returns when to call it
 * again at the latest. */
usec_t consumer_pull(struct consumer *consumer, uint64_t room, usec_t now);
/* Forgets all requests, because the connection is new, or their answers no longer arrive. */
void consumer_reset_requests(struct consumer *consumer);
/* A request stays open for less than half of AckWait: when a message comes back to the server
 * because a machine is dead, or frozen, no request of that machine is left to take it once more. */
void consumer_set_ack_wait(struct consumer *consumer, usec_t ack_wait);
/* Makes the consumer look for messages up to `n` times, until one comes: besides the open request,
 * requests one message for a millisecond, and again when the server answers that there is none. */
void consumer_nudge(struct consumer *consumer, uint64_t n);

/* A message has arrived. */
void consumer_note_message(struct consumer *consumer);
/* A request has ended with this token and answer. An answer without a status does not count:
 * senders of messages can make the server answer here. */
void consumer_note_status(struct consumer *consumer, const char *token, natsMsg *answer,
                          usec_t now);

/* ---- between both files ---- */

/* The consumer was asked for something, or has answered. */
void consumer_note_asked(struct consumer *consumer, usec_t now);
void consumer_note_answered(struct consumer *consumer);
/* It delivers messages. */
void consumer_end_stall(struct consumer *consumer);
