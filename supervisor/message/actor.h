/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Actors: the recipients of messages.
 *
 *   slot      a place in a pool, with any worker
 *   pool      a cell: any one of its slots
 *   group     with Cells=by-key: the cell of the message's routing key
 *   exchange  its subscribers
 *   client    an attached client
 *
 * An actor belongs to an owner, whose class has the functions specific to it. The worker or client
 * behind a slot or client reads an inbox (a ring). Messages that do not fit there, or must wait,
 * are in the mailbox.
 */

#include "shared/base/handle-table.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "supervisor/loop/loop.h"
#include "supervisor/message/actor-class.h"
#include "supervisor/message/delivery/least-loaded.h"
#include "supervisor/message/exchange/exchange.h"
#include "supervisor/message/inbox.h"
#include "supervisor/message/mailbox.h"
#include "supervisor/message/schedule/schedule.h"
#include <stdbool.h>
#include <stdint.h>

struct message_context;

/* Bounds of one actor: open asks, and monitors of others. */
#define ACTOR_ASKS_MAX     16384u
#define ACTOR_MONITORS_MAX 1024u

/* The log lines about the messages for an actor. */
enum actor_log {
    ACTOR_LOG_ENQUEUED = 1u << 0,
    ACTOR_LOG_DISPATCHED = 1u << 1,
    ACTOR_LOG_UNHANDLED = 1u << 2,
};

struct actor_counters {
    uint64_t accepted;  /* messages accepted */
    uint64_t delivered; /* written to its inbox */
    uint64_t consumed;  /* by its workers */
    uint64_t dead;      /* accepted and never handled */
    uint64_t redelivered;
};

struct actor {
    struct message_context *context;
    const struct actor_class *class;
    void *owner;
    struct actor *pool; /* a slot's; NULL for others */
    uint64_t reference; /* its number for others; see actor_options.transient */
    struct index_entry by_reference;
    uint64_t handle;                   /* in context->actors */
    const struct config_group *config; /* its settings for messages; NULL = see actor_policy() */
    char *name;                        /* its address: "group", "group/0", "@3" */
    struct actor_counters counters;
    uint8_t log;        /* enum actor_log */
    bool up;            /* a worker or client is ready to read the inbox */
    bool paused;        /* accepts messages, forwards none */
    bool failed;        /* its workers died too often: new monitors are notified immediately */
    bool restricted;    /* its client may change nothing */
    bool inbox_watched; /* its owner wants one call of inbox_used() */

    struct mailbox mailbox;
    struct inbox inbox;
    struct list blobs; /* messages in the inbox whose payload is a descriptor, oldest first */
    struct loop_deferred feed;

    struct actor *place;          /* of this standby (delivery_swap()); NULL for others */
    struct list standbys;         /* of this place */
    struct list standby_link;     /* in the place's list */
    struct actor *waits_for;      /* the standby whose worker must end before messages continue */
    struct list pool_link;        /* of a slot: in a bucket of its pool */
    struct least_loaded *members; /* a pool's slots, set by its owner; NULL for others */

    struct list asks;                     /* open ones, which it has asked */
    struct list observers;                /* monitors of this actor */
    struct list monitoring;               /* its own monitors of others */
    struct list names;                    /* struct actor_name */
    struct schedule_recipient *scheduled; /* timers that send messages to it; NULL = none yet */
    struct list made;                     /* exchanges that it has created */
    struct list made_link;                /* of an exchange: in the list of its creator */
    struct index asks_by_cookie, monitoring_by_reference;
    struct schedule_share timers; /* that it has set */
    struct exchange_subscriber subscriptions;
    unsigned n_asks, n_monitoring, n_names;

    struct list blocked;      /* senders that wait for room here (Overflow=block) */
    struct list blocked_link; /* in the list of the actor that this one waits for */
    struct list routed_link;  /* in message_context.routed, if an exchange chose that actor */
};

struct actor_options {
    const struct actor_class *class;
    void *owner;
    const char *name;   /* copied */
    struct actor *pool; /* a slot's */
    uint8_t log;
    const struct config_group *config; /* its group's: borrowed, and updated by the owner */
    /* The reference follows from the name: the actor has the same under the next supervisor, whose
     * peers may still know it. A transient actor, and one that returns after it has ended, gets a
     * reference that is never used again. After an upgrade, all actors keep their references
     * (actor-save.h). */
    bool transient;
};

/* 0 or -ENOMEM. End it with actor_end(). */
int actor_new(struct actor **ret, struct message_context *context,
              const struct actor_options *options);
/* Frees an actor without asks, names or messages: the last step of actor_end(). */
void actor_free(struct actor *actor);

/* The next actor of this name gets a reference that is never used again. */
void actor_retire_name(struct message_context *context, const char *name);

/* NULL = the actor has ended, or never was. */
struct actor *actor_get(struct message_context *context, uint64_t reference);

/* `actors` is a struct handle_table. The body may end actors. */
#define actor_each(actor, actors)                                                                  \
    for (size_t actor##_at = 0; actor##_at != SIZE_MAX; actor##_at = SIZE_MAX)                     \
        for (struct actor *actor = NULL; (actor = handle_table_next((actors), &actor##_at));)

/* The actor's name; "" for 0, "(gone)" for one that has ended. Borrowed. */
const char *actor_name_of(struct message_context *context, uint64_t reference);

/* "slot" …; static. */
const char *actor_kind_to_string(enum actor_kind kind);
static inline bool actor_is(const struct actor *actor, enum actor_kind kind)
{
    return actor->class->kind == kind;
}
static inline struct exchange *actor_exchange(const struct actor *actor)
{
    return actor_is(actor, ACTOR_EXCHANGE) ? actor->owner : NULL;
}
/* The actor as seen by others: a standby's place, else the actor itself. */
struct actor *actor_self(struct actor *actor);
/* The actor itself if it is a pool, or the pool of a slot; NULL = neither. */
const struct actor *actor_pool_of(const struct actor *actor);

/* Makes `actor` a standby of `place`; NULL = of none. */
void actor_set_place(struct actor *actor, struct actor *place);
/* The standby's worker has ended: the place's messages no longer wait for it. */
void actor_release_place(struct actor *standby);

/* Returns the policy of its configuration, else that of its class, else the default. */
struct actor_policy actor_policy(const struct actor *actor);

/* Whether its mailbox has room for one more message of that many bytes. */
bool actor_has_room(const struct actor *actor, uint64_t bytes);
/* Whether one more answer of that many bytes may wait for it. */
bool actor_answer_fits(const struct actor *actor, uint64_t bytes);
/* Whether messages may go to its worker now; answers go whenever there is an inbox. */
bool actor_takes_messages(const struct actor *actor);
/* Whether a message may be written to its inbox immediately, since no other is ahead of it. */
bool actor_is_direct(const struct actor *actor);

/* Feeds the inbox from the mailbox at the end of this turn. */
void actor_wake(struct actor *actor);
/* Queues an answer for its worker or client; takes it over. */
void actor_answer(struct actor *actor, struct envelope *envelope);
/* Like actor_answer(), but for a record without payload. Returns 0 or -ENOMEM. */
int actor_answer_record(struct actor *actor, uint16_t kind, const void *body, int size);

/*
 * Suspends a sender until there is room at `to`. A sender without rings, which forwards messages,
 * is fed then. `routed` = an exchange chose `to`: a change of subscriptions also resumes the
 * sender.
 */
void actor_block(struct actor *sender, struct actor *to, bool routed);
void actor_unblock(struct actor *sender);
void actor_unblock_all(struct actor *to);
