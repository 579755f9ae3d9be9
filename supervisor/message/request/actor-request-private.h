/* SPDX-License-Identifier: MIT */
#pragma once

#include "shared/protocol/protocol-requests.h"
#include "supervisor/message/request/actor-request.h"

/* ---- actor-request.c ---- */

/*
 * Makes a message of a record's content and fetches its payload. Returns 0, -ENOMEM or -EMFILE (the
 * message is lost and logged), or another -errno for a violation.
 */
int actor_request_take_envelope(struct actor *from, uint16_t kind,
                                const struct protocol_content *content, struct envelope **ret);

/* Returns 0 for -ENOMEM and -EMFILE, which are not the sender's fault, else `r`. */
int actor_request_forgive(int r);

/* ---- actor-request-verdict.c ---- */

int actor_request_on_forward(struct actor *actor, const struct ring_record *record);
int actor_request_on_verdict(struct actor *actor, const struct ring_record *record);
int actor_request_on_stash(struct actor *actor, const struct ring_record *record);

/* ---- actor-request-query.c ---- */

/* Like actor_request_on_record(). */
int actor_request_on_request(struct actor *actor, const struct ring_record *record);
