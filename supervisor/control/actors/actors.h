/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between the files of io.troupe.Actors. */

#include "supervisor/control/access.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/router.h"
#include "supervisor/varlink/request.h"
#include <stdbool.h>

struct dead_letter;
struct exchange_subscription;

#define CONTROL_TYPE_ALLOWED "a dotted name of at most 128 characters of A-Z a-z 0-9 . _ -"

/* Takes "type" (default: empty) and "key" of the call. On false, an error has been sent. */
bool control_take_topic(struct request *request, struct topic *ret);

/* NULL = NoSuchActor has been sent. */
struct actor *control_find_actor(struct request *request, const char *name);
/* Replies with NoSuchActor. */
void control_refuse_actor(struct request *request, const char *name);
/* NULL = NoSuchExchange has been sent. */
struct actor *control_find_exchange(struct request *request, const char *name);

/* Replies with the error of a routing result: ROUTER_E_* or -errno. */
void control_refuse_routing(struct request *request, const char *to, int result);
/* Returns the sentence for a routing result; static. */
const char *control_routing_text(int result);

/* Checked recipient, type, key and payload; the topic borrows from the call. */
struct control_message {
    struct actor *actor;
    struct topic topic;
    struct payload payload;
};
/* clang-format off */
#define CONTROL_MESSAGE_NULL {.payload = PAYLOAD_NULL}
/* clang-format on */

/*
 * Takes "to", "type", "key" and "payload" of the call, and finds the actor. On false, an error has
 * been sent. The caller always calls control_message_deinit(), and may move the payload away
 * before.
 */
bool control_take_message(struct request *request, struct control_message *ret);
void control_message_deinit(struct control_message *message);

/* Types of io.troupe.Actors as JSON; see report.h. `key` NULL inside an array. */
void report_actor(struct reply *reply, const char *key, const struct actor *actor);
void report_topic(struct reply *reply, const struct topic *topic); /* the members of an object */
void report_exchange(struct reply *reply, const struct actor *actor);
void report_subscription(struct reply *reply, const struct actor *exchange,
                         const struct exchange_subscription *subscription);
/* Whole: with payload and death reports, as far as there is room for them. */
void report_dead_letter(struct reply *reply, const char *key, const struct request *request,
                        const struct dead_letter *letter, bool whole);

/* Dead letters of durable jobs, while they are still to be read from disk after a start. */

struct request;

/* Whether the call has to wait for them. Then its method is called again once they have been read,
 * or cannot be; or an error has been sent. */
bool control_await_letters(struct request *request);

/* Why they are not known, for people. NULL = they have been read. Valid until the loop's next turn.
 */
const char *control_letters_problem(const struct request *request);
