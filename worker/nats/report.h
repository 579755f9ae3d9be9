/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Tells the other machines how this one is: asks the supervisor for its groups in numbers every
 * StateSec=, while connected to NATS, and puts them into the buckets of bucket.h.
 */

#include "worker/nats/config.h"
#include "worker/nats/engine.h"
#include "worker/troupe-query.h"
#include <jansson.h>
#include <stdbool.h>

struct report {
    struct engine *engine;
    const struct config *config;
    struct troupe_query *query; /* NULL = not connected */
    json_t *groups;             /* of the answer that is coming; NULL = nothing was asked */
    usec_t next_at;             /* of the next question */
    bool in_trouble;            /* it was logged */
    unsigned n_stored;          /* of the last report: in so many buckets */
    bool keyed; /* the group of this program has a cell for each key; so far known */
};

void report_init(struct report *report, struct engine *engine, const struct config *config);
void report_deinit(struct report *report);

/* The connection to the engine is new: a report is due. */
void report_wake(struct report *report);

/* The connection to the engine is lost: what was asked is forgotten, as nobody would take the
 * answer. */
void report_sleep(struct report *report);

/* Goes on without waiting. To be called while connected. Returns when to call it again at the
 * latest, though the descriptor is not readable. */
usec_t report_process(struct report *report, usec_t now);

/* -1 = there is nothing to wait for. */
int report_fd(const struct report *report);

/* The answer to something that was put, or that nobody is there to answer. */
void report_note_answer(struct report *report, natsMsg *answer);
void report_note_unanswered(struct report *report);

/* Says that this program ends because it was asked to. */
void report_stop(struct report *report);
