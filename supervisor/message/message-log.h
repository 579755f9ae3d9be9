/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The message log: what became of each message for an actor, as structured journal fields. Switched
 * per group (or exchange) at run time, off by default: then it costs its users one look at
 * actor->log.
 */

#include "supervisor/message/actor.h"

struct group;
struct topic;

struct message_log_entry {
    uint64_t id, sender;
    const struct topic *topic;
    const char *text; /* unhandled: why; NULL = nothing to add */
};

/* Looks at actor->log itself. */
void message_log(const struct actor *actor, enum actor_log what,
                 const struct message_log_entry *entry);

/* For all actors of a group, those to come too; bits of enum actor_log. */
void message_log_switch(struct group *group, uint8_t what);
