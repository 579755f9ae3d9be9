/* SPDX-License-Identifier: MIT */
#pragma once

/* Publishes the state of this machine: while connected to NATS, asks the supervisor for the metrics
 * of its groups every StateSec=, and puts them into the bucket. */

#include "worker/nats/config.h"
#include "worker/nats/engine.h"
#include "worker/nats/inquiry.h"
#include "worker/troupe-query.h"
#include <jansson.h>
#include <stdbool.h>

/* A key-value bucket of JetStream for the states of machines. Keys are MACHINE.GROUP, one for each
 * troupe-nats. Values are JSON:
 *
 *     {"state": "up", "every_usec": …, "version": …, "groups": [{"name": …, "type": …, "state": …,
 *      "size": …, "up": …, "queued": …, "running": …, "waiting": …, "oldest_usec": …}]}
 *     {"state": "stopped"}
 *
 * An "up" that is older than BUCKET_PERIODS times every_usec is dead. The bucket forgets a key
 * after BUCKET_AGE. */

#define BUCKET_NAME "TROUPE_STATE"

/* One report fewer may get lost. */
#define BUCKET_PERIODS 3u
#define BUCKET_AGE     (USEC_PER_SEC * 7 * 24 * 3600)

/* The subject of a key, and the stream of a bucket. */
#define BUCKET_SUBJECT "$KV." BUCKET_NAME "."
#define BUCKET_STREAM  "KV_" BUCKET_NAME

struct report {
    struct engine *engine;
    const struct config *config;
    json_t *groups;  /* from the answer so far */
    usec_t next_at;  /* of the next question */
    bool in_trouble; /* a problem was logged */
    bool stopped;    /* see report_stop() */
    bool keyed;      /* the group is known to have a cell for each key */
};

void report_init(struct report *report, struct engine *engine, const struct config *config);
void report_deinit(struct report *report);

/* Returns whether it is time to ask for the metrics of all groups. */
bool report_is_due(struct report *report, usec_t now);

/* Handles an answer about all groups; `query`: a record. */
void report_note(struct report *report, enum inquiry_answer answer, struct troupe_query *query);

/* Handles the answer to a report. */
void report_note_answer(struct report *report, const char *token, natsMsg *answer);

/* Publishes that this program ends on request. Once that is answered, which sets `stopped`, the
 * server has read everything that was sent before. */
void report_stop(struct report *report);
