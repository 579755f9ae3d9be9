/* SPDX-License-Identifier: MIT */
#pragma once

/* Short answers to requests of workers and attached clients. Each writes one record into the peer's
 * inbox, and returns 0, ENDPOINT_E_FULL (nothing is written), or -errno like endpoint_reserve(). */

#include "shared/protocol/protocol.h"
#include "supervisor/channel/endpoint.h"

/* REFUSED: `error` is an errno, positive; `reason` a sentence, copied. */
int answer_refuse(struct endpoint *endpoint, uint64_t cookie, int error, const char *reason);

/* Like answer_refuse(), but for -errno, with its text. */
int answer_errno(struct endpoint *endpoint, uint64_t cookie, int r);

/* FOUND, with the reference of an actor or a group. */
int answer_found(struct endpoint *endpoint, const struct protocol_found *found);

/* ACCEPTED: the job with this id exists, or is being cancelled. */
int answer_accept(struct endpoint *endpoint, uint64_t cookie, const struct protocol_id *id);

/* ANSWER: a count, an id or a reference. */
int answer_value(struct endpoint *endpoint, uint64_t cookie, uint64_t value);
