/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Names of actors: exchanges, clients ("@3") and the names that actors register. They share one
 * name space with the groups, whose addresses the owner of the groups resolves.
 */

#include "shared/base/list.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actor;
struct message_context;

/* What a registered name may begin with. */
#define ACTOR_NAME_FIRST "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#define ACTOR_NAMES_MAX  1024u /* of one actor */
#define ACTOR_NAME_RULE                                                                            \
    "1 to 255 characters of A-Z a-z 0-9 . _ : -, the first one a letter or a digit"

struct actor_name {
    struct list link; /* in its actor's list */
    struct actor *actor;
    char *name;
};

enum {
    _ACTOR_E_SUCCESS,
    ACTOR_E_EXISTS,   /* a group, an exchange or another actor has that name */
    ACTOR_E_BAD_NAME, /* breaks ACTOR_NAME_RULE */
    ACTOR_E_TOO_MANY,
};

bool actor_name_valid(const char *name, size_t size);

/* Registers a name. 0 (also if the actor has it already), ACTOR_E_*, or -ENOMEM. */
int actor_register(struct actor *actor, const char *name);
/* Makes a client's own name known. 0 or -ENOMEM. */
int actor_publish(struct actor *actor);
/* Whether the actor had that name. */
bool actor_deregister(struct actor *actor, const char *name);
void actor_deregister_all(struct actor *actor);

/* An exchange or an actor that registered this name; NULL = none. */
struct actor *actor_by_name(const struct message_context *context, const char *name);
/* Whom an address means: "group", "group/0", an exchange, a registered name, "@3". NULL = nobody.
 */
struct actor *actor_by_address(const struct message_context *context, const char *address);
