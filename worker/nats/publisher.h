/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Publishes results and dead letters of jobs that have ended, finds out whether they are stored,
 * and acknowledges the messages of those jobs.
 *
 * nats-server 2.9 may lose a message that it has confirmed while leaders change: a follower whose
 * log is longer than the leader's says that it has the message, and the leader counts it. So an
 * answer is in doubt that came late or says that the message was there before, and any answer is if
 * the acknowledgement of the job's message is not confirmed. Then the stream is asked.
 */

#include "shared/base/clock.h"
#include "worker/nats/engine.h"
#include "worker/nats/flight.h"
#include "worker/nats/publication.h"

struct publisher {
    struct engine *engine;
    struct flights *flights;
    usec_t unpublished_at; /* when a publication failed last; 0 = recovered */
    struct rate others;    /* of what is stored in the place of results, in the log */
    uint64_t n_turns;      /* in which messages were acknowledged */
};

void publisher_init(struct publisher *publisher, struct engine *engine, struct flights *flights);

/* Publishes the dead letter of the flight (FLIGHT_LETTER), or its result (FLIGHT_RESULT) unless
 * Results= excludes it. */
void publisher_publish(struct publisher *publisher, struct flight *flight, enum flight_state state,
                       usec_t now);
/* Makes the next publisher_serve() publish all unconfirmed publications again. */
void publisher_publish_soon(struct publisher *publisher);
/* Publishes unconfirmed publications again, and asks about those in doubt. Returns when to call it
 * again. */
usec_t publisher_serve(struct publisher *publisher, usec_t now);
/* The answer to a publication or a question. */
void publisher_note_answer(struct publisher *publisher, const char *token, natsMsg *answer,
                           usec_t now);

/* Sends the acknowledgements of this turn. */
void publisher_acknowledge(struct publisher *publisher);
/* No confirmation of an acknowledgement came: asks whether what was published is stored, then
 * acknowledges again. May forget the flight. */
void publisher_conclude_again(struct publisher *publisher, struct flight *flight, usec_t now);
/* The answer to some acknowledgements: if it confirms them, forgets their flights. */
void publisher_note_acknowledged(struct publisher *publisher, const char *token, natsMsg *answer);
