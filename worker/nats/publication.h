/* SPDX-License-Identifier: MIT */
#pragma once

/* The publications about a job that has ended: its result; and if it is dead, or its message can
 * never be a job, a dead letter with its payload and its death reports. Each has its own subject,
 * of which the stream stores only the first message.
 */

#include "worker/nats/engine.h"
#include "worker/nats/flight.h"

#define PUBLICATION_RESULT_SUBJECT "troupe.result."
#define PUBLICATION_LETTER_SUBJECT "troupe.dead." /* GROUP.STREAM.SEQUENCE follow */

/* The stream that stores both; `setup` makes it. */
#define PUBLICATION_STREAM "TROUPE"

/* The state of the flight decides what is published: FLIGHT_LETTER or FLIGHT_RESULT. */

/* Makes the message. Returns NULL without memory. */
natsMsg *publication_make(const struct engine *engine, const struct flight *flight);
/* Omits a further part, since the message is too large for the server or a stream; Troupe-Missing
 * names it. Returns false if none is left. */
bool publication_omit(struct flight *flight);

/* Asks the stream for it, if it is in doubt. Returns 0 or -errno. */
int publication_ask(struct engine *engine, const struct flight *flight);

/* Makes a copy of the letter for current subscribers of troupe.dead.GROUP, which is neither stored
 * nor confirmed. */
natsMsg *publication_notice(const struct engine *engine, const struct flight *flight);

enum {
    _PUBLICATION_E_SUCCESS,
    PUBLICATION_E_DOUBLE,  /* it was stored before */
    PUBLICATION_E_MISSING, /* it is not stored */
    PUBLICATION_E_FOREIGN, /* the answer is about something else */
    PUBLICATION_E_OTHER,   /* another message is stored in its place */
};

/* Returns the number of the flight that an answer with this token of ENGINE_PUBLISHED is about, and
 * the state in which it counts; 0 = none. */
uint64_t publication_number(const char *token, enum flight_state *ret_state);

/* Answers can be forged: subscribers of results see the addresses of answers, and senders can make
 * the server send its answer about their job, or about a message of a stream, to such an address.
 */

/* Returns 0 if the answer says that it is stored, or PUBLICATION_E_DOUBLE; PUBLICATION_E_FOREIGN if
 * it comes from another stream, or answers a question; with `problem` filled in -EMSGSIZE if it is
 * too large for the stream, or -EIO. */
int publication_confirm(natsMsg *answer, char *problem, size_t size);
/* Evaluates the answer to a question: 0 if the publication is stored, PUBLICATION_E_MISSING,
 * PUBLICATION_E_FOREIGN, PUBLICATION_E_OTHER with the sequence of the other message, or -EIO for
 * another error. */
int publication_found(const struct engine *engine, const struct flight *flight, natsMsg *answer,
                      uint64_t *ret_other);
