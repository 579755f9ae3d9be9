/* SPDX-License-Identifier: MIT */
#pragma once

/* What the parts of the client know of each other: connection, requests, answers. */

#include "shared/protocol/protocol.h"
#include "shared/ring/channel.h"
#include "worker/actor/actor.h"
#include "worker/base/blob.h"
#include "worker/base/pending.h"
#include "worker/client/connect.h"
#include "worker/client/results.h"
#include "worker/troupe.h"

struct troupe_client {
    struct channel channel;
    int socket, control;
    char address[CONNECTION_ADDRESS_SIZE];
    int poll_fd; /* of troupe_client_fd(); -1 = none yet */
    uint32_t inline_max;
    uint64_t blobs_sent; /* also the serial of the last one */
    bool over;           /* the supervisor has hung up, or sent what cannot be understood */
    unsigned unpublished, unreleased; /* records */
    struct pending pending;
    struct results results;
    struct blob blob; /* from troupe_client_blob() */
    struct troupe_actor actor;
};

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

/* Makes the client carry its actor. */
void client_carry(struct troupe_client *client);

/* Keeps an answer for troupe_client_next(). -ENOMEM: an end is lost, so the connection is over. */
int answer_queue(struct troupe_client *client, struct answer *answer);

/* Moves everything that has arrived to the queue, while no call waits for an answer of its own. */
int answers_queue(struct troupe_client *client);

/*
 * Shows and gives back what is outstanding, and has the eventfd tell of what comes. 0, 1 when there
 * is something already, -EINTR when another thread woke this one.
 */
int client_arm(struct troupe_client *client);

/* The same, and sleeps once: until something may have arrived, the
 * supervisor hung up (`over` is raised), or `timeout`. 0, -ETIMEDOUT, -EINTR. */
int client_sleep(struct troupe_client *client, usec_t timeout);

/*
 * Asks: room in the outbox, a number for the answer, the record. With `wait` it waits for room,
 * else -EAGAIN. Nothing has been sent if it fails.
 */
int request_lookup(struct troupe_client *client, const char *name, uint64_t *ret_number);
int request_by_id(struct troupe_client *client, enum protocol_kind kind, const char *id,
                  uint64_t cookie, bool wait, uint64_t *ret_number);

/* Room in the outbox; as above. */
int request_reserve(struct troupe_client *client, uint32_t size, bool wait, void **ret);

struct request_job {
    uint64_t group;
    const struct troupe_job_options *options;
    const void *data;
    size_t size;
    uint64_t cookie;
    uint32_t flags; /* enum protocol_submit_flags */
    bool wait;
};

int request_submit(struct troupe_client *client, const struct request_job *job,
                   uint64_t *ret_number);
