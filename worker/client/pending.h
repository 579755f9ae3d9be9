/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Unanswered requests of a client. The number on the wire finds the caller's cookie here, so
 * callers may choose any cookie, and an answer without a request is detected.
 */

#include "shared/base/handle-table.h"
#include "shared/protocol/job-id.h"

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

/* Takes over `request.id` on success. Returns 0 and a number whose highest bit is 0, or -ENOMEM. */
int pending_take(struct pending *pending, struct pending_request request, uint64_t *ret_number);

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
