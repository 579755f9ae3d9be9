/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between the files of a client: connection, requests, answers, calls. */

#include "shared/base/handle-table.h"
#include "shared/base/list.h"
#include "shared/protocol/protocol.h"
#include "worker/actor/local-actor.h"
#include "worker/base/carrier.h"
#include "worker/client/connect.h"
#include "worker/troupe.h"

/* ---- unanswered requests ---- */

/*
 * Unanswered requests of a client. The number on the wire finds the caller's cookie here, so
 * callers may choose any cookie, and an answer without a request is detected.
 */
struct pending_request {
    uint64_t cookie;
    uint64_t sent;          /* position of the carrier when it was about to be sent */
    struct protocol_id *id; /* owned: a WAIT for this job, which can be sent again; else NULL */
    bool unwanted;          /* its answer is dropped */
};

struct pending {
    struct handle_table table;        /* its objects only mark entries as in use */
    struct pending_request *requests; /* by index */
    uint32_t n_requests;
    size_t cursor; /* of pending_lost() */
};

/* Returns the cookie and forgets the number, or -EPROTO if no request has this number. */
int pending_give(struct pending *pending, uint64_t number, uint64_t *ret_cookie);

/* Returns the request with this number, or NULL. Borrowed until the next call. */
struct pending_request *pending_get(const struct pending *pending, uint64_t number);

/*
 * Returns a request that was sent before `read`, with its number, or NULL if there is none.
 * Borrowed until the next call. Answer or change it before the next call of this function.
 */
struct pending_request *pending_lost(struct pending *pending, uint64_t read, uint64_t *ret_number);

void pending_deinit(struct pending *pending);

/* ---- results ---- */

/* Memory of a client's results until they are released. Results that arrive while a call waits for
 * another are queued. */
struct result_slot {
    struct list link; /* in the queue, or among those of the program */
    void *map;        /* a blob, or NULL */
    size_t map_size;
    struct troupe_result queued;
    _Alignas(16) char bytes[];
};

struct results {
    struct list queue, given;
};

void results_init(struct results *results);

/* Returns whether there was one. */
bool results_dequeue(struct results *results, struct troupe_result *ret);

/* Frees all slots, including those not released. */
void results_deinit(struct results *results);

/* ---- a client ---- */

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
    char refusal[512]; /* why the last submission was refused, or "" */
    struct troupe_actor actor;
};

extern const struct carrier_class client_carrier;

/* A record of the inbox that is not the actor's. */
struct answer {
    uint64_t number; /* of the request */
    enum protocol_kind kind;
    uint64_t group;              /* FOUND */
    bool existing;               /* ACCEPTED */
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
