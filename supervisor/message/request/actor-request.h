/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What workers and clients say to the supervisor as actors: the records of protocol-actors.h.
 *
 *   actor-request.c           telling, asking, replying: the way from ring to ring
 *   actor-request-verdict.c   what becomes of the messages in hand
 *   actor-request-query.c     what is answered with ANSWER, FOUND or REFUSED: names, watches,
 * timers actor-request-exchange.c  likewise: exchanges and who subscribes to them
 */

#include "supervisor/channel/endpoint.h"
#include "supervisor/message/actor.h"

/* Handles a record of an actor, as record() of struct endpoint_handler; -EBADMSG for other records.
 */
int actor_request_on_record(struct actor *actor, const struct ring_record *record);
