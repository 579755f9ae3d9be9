/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The records that workers and clients send as actors (protocol-actors.h):
 *
 *   actor-request.c           TELL, ASK, REPLY: from ring to ring
 *   actor-request-verdict.c   FORWARD, ERRED …: reports about the current message
 *   actor-request-query.c     requests with an answer: names, monitors, timers, exchanges …
 */

#include "supervisor/channel/endpoint.h"
#include "supervisor/message/actor.h"

/* Handles a record, as record() of struct endpoint_handler. Returns -EBADMSG for other kinds. */
int actor_request_on_record(struct actor *actor, const struct ring_record *record);
