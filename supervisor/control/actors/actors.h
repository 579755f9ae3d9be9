/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between the files of io.troupe.Actors. */

#include "supervisor/control/call-payload.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/router.h"
#include "supervisor/varlink/request.h"

#define CONTROL_TYPE_ALLOWED "a dotted name of at most 128 characters of A-Z a-z 0-9 . _ -"

/* Checks the type of a call (default: empty). On false, an error has been sent. */
bool control_take_topic(struct request *request, const char *type, const struct varlink_bytes *key,
                        struct topic *ret);

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

/* Checked recipient, type, key and payload; strings and topic borrow from the call. */
struct control_message {
    const char *to;
    struct actor *actor;
    struct topic topic;
    struct payload payload;
};
/* clang-format off */
#define CONTROL_MESSAGE_NULL {.payload = PAYLOAD_NULL}
/* clang-format on */

struct control_message_parameters {
    const char *to, *type;
    struct varlink_bytes key;
    json_t *payload;
};
#define CONTROL_KEY_ROW(type_, member)                                                             \
    VARLINK_ROW("key", BYTES, type_, member, .allowed = "at most 255 bytes", .max = TOPIC_KEY_MAX)
/* Rows of a parameter table for a struct that has these as its member `message`. */
#define CONTROL_MESSAGE_ROWS(type_)                                                                \
    VARLINK_ROW("to", STRING, type_, message.to, .required = true),                                \
        VARLINK_ROW("type", STRING, type_, message.type), CONTROL_KEY_ROW(type_, message.key),     \
        VARLINK_ROW("payload", OBJECT, type_, message.payload)

/*
 * Checks the parameters and finds the actor. On false, an error has been sent. The caller always
 * calls control_message_deinit(), and may move the payload away before.
 */
bool control_take_message(struct request *request,
                          const struct control_message_parameters *parameters,
                          struct control_message *ret);
void control_message_deinit(struct control_message *message);
