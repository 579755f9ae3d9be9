/* SPDX-License-Identifier: MIT */
#pragma once

/* Asks JetStream for messages: one request at a time, for as many as there is room for. A request
 * ends when that many have come, or after a time that follows from AckWait. */

#include "worker/nats/config.h"
#include "worker/nats/engine.h"
#include <stdbool.h>
#include <stdint.h>

struct puller {
    struct engine *engine;
    const struct config *config;
    usec_t expires;      /* how long a request stays open */
    uint64_t number;     /* of the last request */
    uint64_t open;       /* messages that it may still bring */
    usec_t over_at;      /* when it has ended for certain */
    usec_t gather_until; /* little room is not asked for before; 0 = there was none */
    usec_t not_before;   /* of the next; after an error */
    unsigned n_problems; /* in a row */
};

void puller_init(struct puller *puller, struct engine *engine, const struct config *config);

/* A request stays open for less than half of AckWait: when a message comes back to the server
 * because a machine is dead, or frozen, no request of that machine is left to take it once more.
 *
 * It is open for AckWait / 2.5, 3.5, 4.5 …, so that after AckWait the requests of a machine that
 * had nothing to do meanwhile are not about to end: nats-server before 2.10.16 puts a message off
 * by one more AckWait that comes back when the only request has just ended. */
void puller_set_ack_wait(struct puller *puller, usec_t ack_wait);

/* The connection is new: what was asked for before is forgotten. */
void puller_reset(struct puller *puller);

/* Asks for `room` messages if nothing is open: at once if that is a quarter of InFlight=, otherwise
 * after a millisecond, in which more jobs may end. Returns when to call it again at the latest. */
usec_t puller_ask(struct puller *puller, uint64_t room, usec_t now);

/* A message of the stream has come. */
void puller_note_message(struct puller *puller);

/* The answer with that token and status has come: the request is over. */
void puller_note_status(struct puller *puller, const char *token, natsMsg *message, usec_t now);
/* Nobody is there for requests. */
void puller_note_unanswered(struct puller *puller, usec_t now);
