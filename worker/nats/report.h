/* SPDX-License-Identifier: MIT */
#pragma once

/* Publishes the state of this machine: while connected to NATS, asks the supervisor for the metrics
 * of its groups every StateSec=, and puts them into the bucket of bucket.h. */

#include "worker/nats/config.h"
#include "worker/nats/engine.h"
#include "worker/nats/inquiry.h"
#include "worker/troupe-query.h"
#include <jansson.h>
#include <stdbool.h>

struct report {
    struct engine *engine;
    const struct config *config;
    json_t *groups;  /* from the answer so far */
    usec_t next_at;  /* of the next question */
    bool in_trouble; /* and it was logged */
    bool keyed;      /* the group is known to have a cell for each key */
};

void report_init(struct report *report, struct engine *engine, const struct config *config);
void report_deinit(struct report *report);

/* Returns whether it is time to ask for the metrics of all groups. */
bool report_is_due(struct report *report, usec_t now);

/* Handles an answer about all groups; `query`: a record. */
void report_note(struct report *report, enum inquiry_answer answer, struct troupe_query *query);

/* Handles the answer to a report. */
void report_note_answer(struct report *report, natsMsg *answer);

/* Publishes that this program ends on request. */
void report_stop(struct report *report);
