/* SPDX-License-Identifier: MIT */
#pragma once

/* Asks JetStream for messages: one request after the other, for as many as there is room for. A
 * request ends when that many have come, or after a time that follows from AckWait. The next one is
 * sent shortly before: nats-server before 2.10.16 puts a message off by one more AckWait that comes
 * back when the last request has just ended, and may deliver another one twice
 * (nats-io/nats-server#5305, #5338). */

#include "worker/nats/config.h"
#include "worker/nats/engine.h"
#include <stdbool.h>
#include <stdint.h>

struct puller {
    struct engine *engine;
    const struct config *config;
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

void puller_init(struct puller *puller, struct engine *engine, const struct config *config);

/* A request stays open for less than half of AckWait: when a message comes back to the server
 * because a machine is dead, or frozen, no request of that machine is left to take it once more. */
void puller_set_ack_wait(struct puller *puller, usec_t ack_wait);

/* Forgets all requests, because the connection is new. */
void puller_reset(struct puller *puller);

/* Asks for `room` messages if nothing is open: immediately if that is a quarter of InFlight=,
 * otherwise after a millisecond, in which more jobs may end. Returns when to call it again at the
 * latest. */
usec_t puller_ask(struct puller *puller, uint64_t room, usec_t now);

/* Makes the consumer look for messages up to `n` times, until one comes: besides the open request,
 * requests one message for a millisecond, and again when the server answers that there is none. */
void puller_nudge(struct puller *puller, uint64_t n);

/* A message of the stream has arrived. */
void puller_note_message(struct puller *puller);

/* The answer with that token and status has come: the request is over. Without a status it is none:
 * senders of messages can have the server answer there. */
void puller_note_status(struct puller *puller, const char *token, natsMsg *message, usec_t now);
