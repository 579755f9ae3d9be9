/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Names of actors: of exchanges, clients ("@3"), and those that actors register. They share one
 * name space with groups, whose owner resolves their addresses.
 */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include <stdbool.h>
#include <stddef.h>

struct actor;
struct message_context;

/* The first character of a name. */
#define ACTOR_NAME_FIRST "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#define ACTOR_NAMES_MAX  1024u /* of one actor */
#define ACTOR_NAME_RULE                                                                            \
    "1 to 255 characters of A-Z a-z 0-9 . _ : -, the first one a letter or a digit"

struct actor_name {
    struct list link; /* in its actor's list */
    struct index_entry by_name;
    struct actor *actor;
    char name[];
};

enum {
    _ACTOR_E_SUCCESS,
    ACTOR_E_EXISTS,   /* a group, an exchange or another actor has that name */
    ACTOR_E_BAD_NAME, /* breaks ACTOR_NAME_RULE */
    ACTOR_E_TOO_MANY,
};

bool actor_name_valid(const char *name, size_t size);

/* Registers a name; idempotent. 0, ACTOR_E_*, or -ENOMEM. */
int actor_register(struct actor *actor, const char *name);
/* Registers a client's own name. 0 or -ENOMEM. */
int actor_publish(struct actor *actor);
/* False if the actor did not have that name. */
bool actor_deregister(struct actor *actor, const char *name);
void actor_deregister_all(struct actor *actor);

/* The exchange or actor with this registered name; NULL = none. */
struct actor *actor_by_name(const struct message_context *context, const char *name);
/* The actor of an address: "group", "group/0", a registered name, "@3". NULL = none. */
struct actor *actor_by_address(const struct message_context *context, const char *address);
