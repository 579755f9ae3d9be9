/* SPDX-License-Identifier: MIT */
#pragma once

/* What distinguishes the kinds of actors: their settings, and the functions of their owners. */

#include "supervisor/config/config.h"
#include <stdbool.h>
#include <stdint.h>

struct actor;
struct envelope;
struct topic;

enum actor_kind {
    ACTOR_SLOT,
    ACTOR_POOL,
    ACTOR_GROUP,
    ACTOR_EXCHANGE,
    ACTOR_CLIENT,
    _ACTOR_N_KINDS,
};

/* The settings for an actor's messages. */
struct actor_policy {
    uint64_t mailbox_max, mailbox_memory_max;
    enum config_overflow overflow;
    enum config_on_crash on_crash;
    unsigned message_retries;
};

/* clang-format off */
#define ACTOR_POLICY_DEFAULT {.mailbox_max = 10000, .mailbox_memory_max = UINT64_C(64) << 20}
/* clang-format on */

struct actor_class {
    enum actor_kind kind;
    /* Forwards a message, or enqueues it; takes it over. 0 or ROUTER_E_*. */
    int (*deliver)(struct actor *actor, struct envelope *envelope);
    /* Forwards messages that wait in the mailbox. */
    void (*feed)(struct actor *actor);

    /* For groups and exchanges, which only forward messages (forward.h); NULL for others. */

    /* Forwards a message to its recipients; takes it over. 0 or ROUTER_E_*. */
    int (*hand_on)(struct actor *actor, struct envelope *envelope);
    /*
     * Finds the one recipient of a message of this topic. 0, or ROUTER_E_* or -errno with a static
     * text: there is none, or several.
     */
    int (*resolve)(struct actor *actor, const struct topic *topic, struct actor **ret,
                   const char **ret_reason);

    /* The following members are optional. */

    struct actor_policy (*policy)(const struct actor *actor);
    /* Whether the actor has no worker until a command starts it. NULL = never. */
    bool (*is_stopped)(const struct actor *actor);
    /* A message was written to the inbox while inbox_watched was set, or the actor is resumed. */
    void (*inbox_used)(struct actor *actor);
    /* Whether the owner waits for room in the inbox, which messages must leave to it. */
    bool (*inbox_reserved)(const struct actor *actor);
    /* Frees an owner that ends with its actor. */
    void (*free_owner)(struct actor *actor);
};
