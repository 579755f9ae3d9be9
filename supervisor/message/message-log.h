/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The message log: what became of each message for an actor, as structured journal fields. Switched
 * on per group or exchange at run time (actor->log).
 */

#include "supervisor/message/actor.h"

struct message_log_entry {
    uint64_t id, sender;
    const struct topic *topic;
    const char *text; /* why it was not handled; NULL = nothing to add */
};

/* Logs an entry if actor->log has the bit. */
void message_log(const struct actor *actor, enum actor_log what,
                 const struct message_log_entry *entry);
