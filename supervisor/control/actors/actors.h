/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between the files of io.troupe.Actors. */

#include "supervisor/control/access.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/message/router.h"
#include "supervisor/varlink/request.h"
#include <stdbool.h>

struct exchange_subscription;

#define CONTROL_TYPE_ALLOWED "a dotted name of at most 128 characters of A-Z a-z 0-9 . _ -"

/* Takes "type" (default: empty) and "key" of the call. On false, an error has been sent. */
bool control_take_topic(struct request *request, struct topic *ret);

/* Returns NULL after it has sent NoSuchActor. */
struct actor *control_find_actor(struct request *request, const char *name);
/* Replies with NoSuchActor. */
void control_refuse_actor(struct request *request, const char *name);
/* Returns NULL after it has sent NoSuchExchange. */
struct actor *control_find_exchange(struct request *request, const char *name);

/* Replies with the error of a routing result: ROUTER_E_* or -errno. */
void control_refuse_routing(struct request *request, const char *to, int result);
/* Returns the sentence for a routing result; static. */
const char *control_routing_text(int result);

/* Types of io.troupe.Actors as JSON; see report.h. `key` NULL inside an array. */
void report_actor(struct reply *reply, const char *key, const struct actor *actor);
void report_topic(struct reply *reply, const struct topic *topic); /* the members of an object */
void report_exchange(struct reply *reply, const struct actor *actor);
void report_subscription(struct reply *reply, const struct actor *exchange,
                         const struct exchange_subscription *subscription);
/* `whole`: with payload and death reports, as far as there is room for them. */
void report_dead_letter(struct reply *reply, const char *key, const struct request *request,
                        const struct dead_letter *letter, bool whole);

/* ---- after a start, while dead letters of durable jobs are read from disk ---- */

/* Returns whether the call has to wait for dead letters. Then its method is called again once they
 * have been read, or cannot be; or an error has been sent. */
bool control_await_letters(struct request *request);
/* Like control_await_letters(), but waits for all rows: a job may have the unique key of a letter
 * that is to be sent again. */
bool control_await_rows(struct request *request);

/* ---- requeue.c ---- */

struct bulk;

/*
 * Sends a dead letter again: a message to its recipient with its sender, a dead job as a new job,
 * whose id is copied to `ret_job`. `to`: the address to send it to instead; NULL = none. Frees the
 * letter and counts it in the bulk. A letter that cannot be sent stays. If a dead job is sent to a
 * durable group, the transaction that adds the new job removes the letter, which is pending until
 * then.
 */
void requeue_letter(struct bulk *bulk, struct dead_letter *letter, const char *to,
                    char ret_job[PROTOCOL_ID_TEXT]);
