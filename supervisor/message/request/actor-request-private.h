/* SPDX-License-Identifier: MIT */
#pragma once

#include "supervisor/message/request/actor-request.h"

/* ---- actor-request.c ---- */

/*
 * A message out of a record's content, whose payload is fetched: 0, -ENOMEM or -EMFILE (it is lost,
 * which the log says), or -EBADMSG and the like for what makes no sense.
 */
int actor_request_take_envelope(struct actor *from, uint16_t kind,
                                const struct protocol_content *content, struct envelope **ret);

/* ---- actor-request-verdict.c ---- */

int actor_request_on_forward(struct actor *actor, const struct ring_record *record);
int actor_request_on_verdict(struct actor *actor, const struct ring_record *record);
int actor_request_on_stash(struct actor *actor, const struct ring_record *record);

/* ---- actor-request-query.c ---- */

/* As actor_request_on_record(). */
int actor_request_on_request(struct actor *actor, const struct ring_record *record);

/*
 * As whom an actor changes what may belong to others. NULL = it may change everything: a client
 * that is permitted to change something at all.
 */
struct actor *actor_request_owner(struct actor *actor);

/* REFUSED with the sentence for what a name was not taken for: an ACTOR_E_* or -errno. */
int actor_request_refuse_name(struct actor *actor, uint64_t cookie, int r);

/* ---- actor-request-exchange.c: as struct endpoint_handler's record() ---- */

int actor_request_on_subscription(struct actor *actor, const struct ring_record *record);
int actor_request_on_exchange(struct actor *actor, const struct ring_record *record);
int actor_request_on_exchange_delete(struct actor *actor, const struct ring_record *record);
