/* SPDX-License-Identifier: MIT */
#pragma once

/* The state that the files of message/ share. */

#include "shared/base/clock.h"
#include "shared/base/handle-table.h"
#include "shared/base/index.h"
#include "supervisor/loop/loop.h"
#include "supervisor/message/ask/ask.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/message/schedule/schedule.h"
#include "supervisor/succession/waiting-room.h"
#include <stdbool.h>
#include <stdint.h>

struct alarms;
struct death_log;
struct event_bus;
struct limited_log;
struct loop;

/* The work of exchanges and groups in one turn: messages, copies and tries of patterns. */
struct forward_budget {
    usec_t turn;
    uint64_t used;
};

struct message_context {
    /* Set by the composition root after message_context_init(). */
    struct loop *loop;
    struct alarms *alarms;
    struct event_bus *events;
    struct limited_log *log; /* NULL = lines are not limited */
    struct death_log *deaths;
    /*
     * Finds the actor of a group, cell or slot by its address. False if there is no such address;
     * `*ret` stays NULL if it takes no messages. NULL = there are no groups.
     */
    bool (*find_in_groups)(void *groups, const char *address, struct actor **ret);
    void *groups;

    struct handle_table actors;
    struct index references; /* struct actor.by_reference */
    struct actor *found;     /* by the last actor_get(); NULL = unknown */
    struct index names;      /* struct actor_name.by_name */
    struct ask_table asks;
    struct schedule_table schedules;
    struct dead_letters dead_letters;
    struct rate announced;         /* events about undeliverable messages */
    struct shares exchange_shares; /* of groups: kind 0 is the number of exchanges */
    struct list remains;           /* of ended actors: struct remains.link */
    struct loop_deferred free_remains;
    struct forward_budget at_once, fed; /* as messages come, and out of mailboxes */
    struct forward_budget *spending;    /* which of these work counts against now; NULL = none */
    struct list routed;                 /* senders that wait for an actor that an exchange chose */
    uint64_t n_transient;               /* references that do not follow from a name */
    /* A bit for the name of each actor that has ended, by its hash: an actor that returns gets
     * another reference. If names share a bit, they only fail to keep their references across a
     * crash. */
    uint64_t retired[1024];
    struct waiting_room inherited; /* rows of an upgrade: of actors, and of other folders */
    uint32_t kept;                 /* enum memory_kept, for peers that are adopted */
    /* "@N". A number that was reused would give one client the answers to another. */
    uint64_t *last_client;
    uint64_t own_last_client; /* until the supervisor points to memory that outlives it */
    uint64_t last_message;    /* id */
};

/* The bounds of the dead letters are set by dead_letters_resize(). */
void message_context_init(struct message_context *context);
/* Ends all actors that are left. */
void message_context_deinit(struct message_context *context);

/* The id of a new message. */
static inline uint64_t message_context_next_id(struct message_context *context)
{
    return ++context->last_message;
}
