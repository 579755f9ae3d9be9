/* SPDX-License-Identifier: MIT */
#pragma once

/* What the files of message/ share. */

#include "shared/base/rate.h"
#include "supervisor/message/actor-table.h"
#include "supervisor/message/ask/ask.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/message/schedule/schedule.h"
#include <stdbool.h>
#include <stdint.h>

struct alarms;
struct death_log;
struct event_bus;
struct limited_log;
struct loop;

struct message_context {
    /* Set by the composition root after message_context_init(). */
    struct loop *loop;
    struct alarms *alarms;
    struct event_bus *events;
    struct limited_log *log; /* NULL = lines are not limited */
    struct death_log *deaths;
    /*
     * Finds the actor of a group, cell or slot by its address. Whether there is such an address;
     * `*ret` stays NULL for one that takes no messages. NULL = there are no groups.
     */
    bool (*find_in_groups)(void *groups, const char *address, struct actor **ret);
    void *groups;

    struct actor_table actors;
    void *names; /* tree of struct actor_name */
    struct ask_table asks;
    struct schedule_table schedules;
    struct dead_letters dead_letters;
    struct rate announced; /* events of messages that ended undelivered */
    uint32_t n_exchanges;
    struct list routed;    /* senders that wait for room at an actor that an exchange chose */
    uint64_t last_client;  /* "@N" */
    uint64_t last_message; /* id */
};

/* Clears everything. The bounds of the dead letters are set by dead_letters_resize(). */
void message_context_init(struct message_context *context);
/* Ends all actors that are left. */
void message_context_deinit(struct message_context *context);

/* The id for a message that begins its way now. */
static inline uint64_t message_context_next_id(struct message_context *context)
{
    return ++context->last_message;
}
