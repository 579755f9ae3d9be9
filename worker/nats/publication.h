/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What is published about a job that has ended: its result, for everybody who knows STREAM and
 * SEQUENCE; and of one that is dead or was never possible, a dead letter with its payload and its
 * death reports. Each has a subject of its own, of which the stream stores the first message only.
 */

#include "worker/nats/config.h"
#include "worker/nats/engine.h"
#include "worker/nats/flight.h"

#define PUBLICATION_RESULT_SUBJECT "troupe.result."
#define PUBLICATION_LETTER_SUBJECT "troupe.dead." /* GROUP.STREAM.SEQUENCE follow */

/* The stream that stores both, as setup.h makes it. */
#define PUBLICATION_STREAM "TROUPE"

/* What an answer is about: a result or a letter, its publication or a question about it. */
enum publication_kind {
    PUBLICATION_LETTER = 1 << 0,
    PUBLICATION_QUESTION = 1 << 1,
};

/* Each leaves out what is too large for the server or a stream, or malformed, and says so in
 * Troupe-Missing; of a `bare` flight all that may be left out. Returns NULL without memory. */
natsMsg *publication_result(const struct engine *engine, const struct config *config,
                            const struct flight *flight);
natsMsg *publication_letter(const struct engine *engine, const struct config *config,
                            const struct flight *flight);

/* Asks the stream for what the state of the flight has it publish. Returns 0 or -errno. */
int publication_ask(struct engine *engine, const struct config *config,
                    const struct flight *flight);

/* Makes the same letter for current subscribers of troupe.dead.GROUP; no stream stores it, and no
 * server confirms it. */
natsMsg *publication_notice(const struct engine *engine, const struct config *config,
                            const struct flight *flight);

enum {
    _PUBLICATION_E_SUCCESS,
    PUBLICATION_E_DOUBLE,  /* it was stored before */
    PUBLICATION_E_MISSING, /* it is not stored */
    PUBLICATION_E_FOREIGN, /* the answer is about something else */
    PUBLICATION_E_OTHER,   /* something else is stored in its place */
};

/* Returns the number of the flight that an answer with this token, which begins with
 * ENGINE_PUBLISHED_TOKEN, is about; 0 = none. */
uint64_t publication_number(const char *token, enum publication_kind *ret_kind);

/*
 * Subscribers of results see where the answers go, and senders of jobs can have the server answer
 * there: for a job that they send, and for a message that they ask a stream for.
 */

/* Returns 0 if the answer says that it is stored, or PUBLICATION_E_DOUBLE; PUBLICATION_E_FOREIGN if
 * it comes from another stream, or answers a question; with `problem` filled in -EMSGSIZE if it is
 * too large for the stream, or -EIO. */
int publication_confirm(natsMsg *answer, char *problem, size_t size);
/* The answer to a question: 0 if the stream has what the state of the flight has it publish,
 * PUBLICATION_E_MISSING, PUBLICATION_E_FOREIGN, PUBLICATION_E_OTHER with its sequence, or -EIO if
 * it does not tell. */
int publication_found(const struct config *config, const struct flight *flight, natsMsg *answer,
                      uint64_t *ret_other);
