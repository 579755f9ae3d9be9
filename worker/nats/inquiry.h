/* SPDX-License-Identifier: MIT */
#pragma once

/* Asks the supervisor questions over one connection, one at a time. */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "worker/nats/config.h"
#include "worker/nats/flight.h"
#include "worker/troupe-query.h"

enum inquiry_answer {
    INQUIRY_BEGIN, /* forget the records of an earlier answer: a lost connection has cut it */
    INQUIRY_RECORD,
    INQUIRY_END,     /* of the records */
    INQUIRY_UNKNOWN, /* instead: the supervisor knows no such job or group */
    INQUIRY_LEFT,    /* instead: the supervisor stops, and leaves the job on disk */
};

/* `flight`: what the question is about; NULL if that is the group or the machine. `query` is NULL
 * unless INQUIRY_RECORD. May free the flight or ask something, except for INQUIRY_RECORD about a
 * dead flight. */
typedef void (*inquiry_fn)(void *userdata, struct flight *flight, enum question_type question,
                           enum inquiry_answer answer, struct troupe_query *query);

struct inquiry {
    struct troupe_query *query; /* NULL = not connected */
    struct flights *flights;
    const struct config *config;
    inquiry_fn answered;
    void *userdata;
    struct list waiting;                  /* struct question.link */
    struct question others[_N_QUESTIONS]; /* those that are not about flights */
    bool asking;                          /* the following describes the question */
    enum question_type type;
    uint64_t flight;   /* the number of the flight, if it is about one */
    bool outdated;     /* the flight was asked about in another way, so this answer is too old */
    usec_t not_before; /* of the next attempt to connect */
};

/* All but `inquiry` are borrowed. */
void inquiry_init(struct inquiry *inquiry, struct flights *flights, const struct config *config,
                  inquiry_fn answered, void *userdata);
void inquiry_deinit(struct inquiry *inquiry);

/* These ask, unless the question is already waiting or being asked. The answer follows from
 * inquiry_process(). What to ask about a flight depends on its state. */
void inquiry_ask(struct inquiry *inquiry, struct flight *flight);
void inquiry_ask_other(struct inquiry *inquiry, enum question_type type);

/* Does everything that is possible without waiting. Returns when to call it again, even if the
 * descriptor is not readable. */
usec_t inquiry_process(struct inquiry *inquiry, usec_t now);

/* -1 = there is nothing to wait for. */
int inquiry_fd(const struct inquiry *inquiry);
