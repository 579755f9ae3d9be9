/* SPDX-License-Identifier: MIT */
#pragma once

/* Asks the supervisor about jobs in flight, one at a time: whether it has them, what they wait for,
 * and how they died. */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "worker/nats/flight.h"
#include "worker/troupe-query.h"

enum inquiry_question {
    INQUIRY_WAITS,  /* of a flight that is here: the job's state, and records of type Wait */
    INQUIRY_JOB,    /* of a dead one: a record of type Job */
    INQUIRY_DEATHS, /* of a dead one whose job is known: records of type Death, newest first */
};

enum inquiry_answer {
    INQUIRY_RECORD,
    INQUIRY_END,     /* of the records */
    INQUIRY_UNKNOWN, /* instead: the supervisor knows no such job */
    INQUIRY_LEFT,    /* instead: the supervisor stops, and leaves the job on disk */
};

/* `query` is NULL unless INQUIRY_RECORD. May free the flight or ask about it again, except for
 * INQUIRY_RECORD of a dead one. */
typedef void (*inquiry_fn)(void *userdata, struct flight *flight, enum inquiry_question question,
                           enum inquiry_answer answer, struct troupe_query *query);

struct inquiry {
    struct troupe_query *query; /* NULL = not connected */
    struct flights *flights;
    const char *stream;
    inquiry_fn answered;
    void *userdata;
    struct list waiting; /* struct flight.inquiry */
    uint64_t current;    /* number of the flight; 0 = none */
    enum inquiry_question question;
    enum flight_state state; /* of that flight when the question was sent */
    bool
        outdated; /* the flight was asked about again in another state, so this answer is too old */
    usec_t not_before; /* of the next attempt to connect */
};

void inquiry_init(struct inquiry *inquiry, struct flights *flights, const char *stream,
                  inquiry_fn answered, void *userdata);
void inquiry_deinit(struct inquiry *inquiry);

/* Idempotent. The answer follows from inquiry_process(). */
void inquiry_ask(struct inquiry *inquiry, struct flight *flight);

/* Does everything that is possible without waiting. Returns when to call it again, even if the
 * descriptor is not readable. */
usec_t inquiry_process(struct inquiry *inquiry, usec_t now);

/* -1 = there is nothing to wait for. */
int inquiry_fd(const struct inquiry *inquiry);
