/* SPDX-License-Identifier: MIT */
#pragma once

/* Publishes the state of this machine: while connected to NATS, asks the supervisor for the metrics
 * of its groups every StateSec=, and puts them into the bucket of bucket.h.
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
    json_t *groups;             /* from the answer so far; NULL = no question is open */
    usec_t next_at;             /* of the next question */
    bool in_trouble;            /* and it was logged */
    bool keyed;                 /* the group is known to have a cell for each key */
};

void report_init(struct report *report, struct engine *engine, const struct config *config);
void report_deinit(struct report *report);

/* Makes a report due, because the connection to the engine is new. */
void report_wake(struct report *report);

/* Forgets an open question, because the connection to the engine is lost. */
void report_sleep(struct report *report);

/* Does everything that is possible without waiting. Call it only while connected. Returns when to
 * call it again, even if the descriptor is not readable. */
usec_t report_process(struct report *report, usec_t now);

/* -1 = there is nothing to wait for. */
int report_fd(const struct report *report);

/* Handle an answer to a report, and that there is no responder. */
void report_note_answer(struct report *report, natsMsg *answer);
void report_note_unanswered(struct report *report);

/* Publishes that this program ends on request. */
void report_stop(struct report *report);
