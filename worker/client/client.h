/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between the files of a client: connection, requests, answers, calls. */

#include "shared/protocol/protocol.h"
#include "worker/actor/local-actor.h"
#include "worker/base/carrier.h"
#include "worker/client/connect.h"
#include "worker/client/pending.h"
#include "worker/client/results.h"
#include "worker/troupe.h"

struct troupe_client {
    struct carrier carrier;
    int socket; /* its end is the end of the connection */
    char address[CONNECTION_ADDRESS_SIZE];
    unsigned unreleased; /* records read since space was released */
    struct pending pending;
    bool restarted; /* another supervisor has taken over */
    bool bereft;    /* requests sent before position `read` will not be answered */
    uint64_t read;  /* of the carrier; UINT64_MAX = the connection is over */
    struct results results;
    struct troupe_actor actor;
};

extern const struct carrier_class client_carrier;

/* A record of the inbox that is not the actor's. */
struct answer {
    uint64_t number; /* of the request */
    enum protocol_kind kind;
    uint64_t group;              /* FOUND */
    struct troupe_result result; /* other kinds; with the cookie of the request */
};

/*
 * Reads records up to the next answer, whose request is forgotten. Returns 0, RING_E_EMPTY, -EPIPE
 * if the answer is corrupt, which ends the connection, or -ENOMEM, which leaves it in the ring.
 */
int answer_next(struct troupe_client *client, struct answer *ret);

/* Keeps an answer for troupe_client_next(). -ENOMEM ends the connection, since an answer is lost.
 */
int answer_queue(struct troupe_client *client, struct answer *answer);

/* The supervisor has ended: requests sent before this position of the carrier get no answer, except
 * those that the next one has `kept` (enum memory_kept). */
void client_lose(struct troupe_client *client, uint64_t read, uint32_t kept);

/* Checks for the end of the connection, and returns `over`. */
bool client_hung_up(struct troupe_client *client);

/*
 * Publishes and releases records, and arms the eventfd for new ones. Returns 0, 1 if there are
 * already some, or -EINTR if another thread woke this one.
 */
int client_arm(struct troupe_client *client);

/* Arms, and sleeps until something may have arrived, the connection ended, or `timeout`. Returns 0,
 * -ETIMEDOUT or -EINTR. */
int client_sleep(struct troupe_client *client, usec_t timeout);

/*
 * Sends a request, and returns the number that its answer will have. `flags`: enum carrier_flags.
 * Returns 0 or -errno; after an error nothing was sent.
 */
int request_lookup(struct troupe_client *client, const char *name, uint64_t *ret_number);
/* `kind`: CANCEL or WITHDRAW. */
int request_cancel(struct troupe_client *client, const char *id, enum protocol_kind kind,
                   unsigned flags, uint64_t *ret_number);
int request_wait(struct troupe_client *client, const char *id, uint64_t cookie);
/* Sends a WAIT again, under the same number. May wait for room. */
int request_wait_again(struct troupe_client *client, struct pending_request *request,
                       uint64_t number);

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
