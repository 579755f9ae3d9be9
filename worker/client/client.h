/* SPDX-License-Identifier: MIT */
#pragma once

/* What the parts of the client know of each other: connection, requests, answers. */

#include "shared/protocol/protocol.h"
#include "shared/ring/channel.h"
#include "worker/actor/actor.h"
#include "worker/base/carrier.h"
#include "worker/base/pending.h"
#include "worker/client/connect.h"
#include "worker/client/results.h"
#include "worker/troupe.h"

struct troupe_client {
    struct carrier carrier;
    int socket; /* its end is the end of the connection */
    char address[CONNECTION_ADDRESS_SIZE];
    unsigned unreleased; /* records read since space was given back */
    struct pending pending;
    struct results results;
    struct troupe_actor actor;
};

extern const struct carrier_class client_carrier;

/* One record of the inbox, understood. */
struct answer {
    uint64_t number; /* of the question */
    enum protocol_kind kind;
    uint64_t group;              /* FOUND */
    struct troupe_result result; /* the others; cookie filled in */
};

/*
 * The next answer that has arrived; the question is forgotten. 0, RING_E_EMPTY, -EPIPE when it
 * cannot be understood (the connection is over then), or -ENOMEM (it is still there).
 */
int answer_next(struct troupe_client *client, struct answer *ret);

/* Keeps an answer for troupe_client_next(). -ENOMEM: an end is lost, so the connection is over. */
int answer_queue(struct troupe_client *client, struct answer *answer);

/*
 * Shows and gives back what is outstanding, and has the eventfd tell of what comes. 0, 1 when there
 * is something already, -EINTR when another thread woke this one.
 */
int client_arm(struct troupe_client *client);

/* The same, and sleeps once: until something may have arrived, the
 * supervisor hung up (`over` is raised), or `timeout`. 0, -ETIMEDOUT, -EINTR. */
int client_sleep(struct troupe_client *client, usec_t timeout);

/*
 * Sends a request, and returns the number that its answer will have. `flags`: enum carrier_flags.
 * Returns 0 or -errno; nothing was sent if it fails.
 */
int request_lookup(struct troupe_client *client, const char *name, uint64_t *ret_number);
int request_by_id(struct troupe_client *client, enum protocol_kind kind, const char *id,
                  uint64_t cookie, unsigned flags, uint64_t *ret_number);

struct request_job {
    uint64_t group;
    const struct troupe_job_options *options;
    const void *data;
    size_t size;
    uint64_t cookie;
    uint32_t flags; /* enum protocol_submit_flags */
    bool wait;      /* for room */
};

int request_submit(struct troupe_client *client, const struct request_job *job,
                   uint64_t *ret_number);
