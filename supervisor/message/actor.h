/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Actors: whatever can be told something. The table gives each a reference (generation << 32 |
 * index) that finds it in one step for as long as it is there, whatever becomes of the processes
 * behind it, and nobody else ever after.
 *
 *   slot      the worker in it, or its successor
 *   pool      a cell: any one of its slots
 *   group     with Cells=by-key: the cell of the message's routing key
 *   exchange  hands on to its subscribers
 *   client    an attached ring client
 *
 * Names: groups stand in the registry; exchanges and names that actors gave themselves stand here.
 */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include "shared/base/rate.h"
#include "supervisor/config/config.h"
#include "supervisor/loop/loop.h"
#include "supervisor/message/exchange.h"
#include "supervisor/message/least-loaded.h"
#include "supervisor/message/mailbox.h"
#include "supervisor/message/schedule.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attachment;
struct cell;
struct context;
struct exchange;
struct group;
struct endpoint;
struct slot;

enum actor_kind {
    ACTOR_SLOT,
    ACTOR_POOL,
    ACTOR_GROUP,
    ACTOR_EXCHANGE,
    ACTOR_CLIENT,
    _ACTOR_N_KINDS,
};

/* What a name given at run time may begin with. */
#define ACTOR_NAME_FIRST "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* Open asks and watches of one actor, at most. */
#define ACTOR_ASKS_MAX     16384u
#define ACTOR_MONITORS_MAX 1024u
#define ACTOR_NAMES_MAX    1024u
/* Exchanges, all together: anybody may make some, and they outlive whoever did. */
#define ACTOR_EXCHANGES_MAX 10000u

/* What is logged about the messages for an actor; off by default. */
enum actor_log {
    ACTOR_LOG_ENQUEUED = 1u << 0,
    ACTOR_LOG_DISPATCHED = 1u << 1,
    ACTOR_LOG_UNHANDLED = 1u << 2,
};

struct actor_counters {
    uint64_t accepted;  /* messages taken in, whichever way they went */
    uint64_t delivered; /* written to its inbox */
    uint64_t consumed;  /* by its workers */
    uint64_t dead;      /* accepted and never handled */
    uint64_t redelivered;
};

struct actor {
    struct context *context;
    uint64_t reference;
    enum actor_kind kind;
    char *name; /* its address: "group", "group/0", "@3"; for logs and lists */
    union {
        struct slot *slot;
        struct cell *cell;
        struct group *group;
        struct exchange *exchange; /* owned */
        struct attachment *client;
    };
    struct actor *identity;  /* the place that this one stands in at (stand-in.h); else NULL */
    struct actor *waits_for; /* messages wait for the end of this stand-in's worker; or NULL */
    struct list stand_ins, stand_in_link; /* those at this place; in the place's list */
    struct endpoint *endpoint; /* the rings of its worker or client; NULL while it has none */
    struct mailbox mailbox;    /* what waits for it here */
    bool up;                   /* somebody is ready to read the inbox */
    bool paused;               /* takes messages, hands none on */
    bool full;                 /* the inbox is: space() will come */
    bool held_up;              /* not read from until it has read what it was answered */
    bool tells_clock;          /* a slot: its clock is to hear of the next message */
    bool owes;                 /* an answer finds no room in it: messages are not to take that */
    uint8_t log;               /* enum actor_log: what the message log is to say */
    bool failed;               /* its watchers were told; whoever watches it now is told at once */
    bool exchange_declared;    /* by a file, not at run time */
    uint64_t owner;            /* an exchange: the actor that made it; 0 = a file, or outside */
    struct actor_counters counters;
    struct loop_deferred feed;

    /* In the inbox now; delivery.c. */
    uint32_t control;      /* enum memory_control, as in its inbox */
    uint32_t n_inbox;      /* messages, not known to be consumed */
    uint32_t n_pooled;     /* messages of the pool, not known to be consumed */
    uint32_t settled;      /* cursor behind the last record that was reported on */
    struct list blobs;     /* messages sent with a descriptor, oldest first */
    struct list pool_link; /* slots: in its pool's bucket */
    uint32_t recent[16];   /* cursors of the last messages taken: the flight recorder */
    uint32_t n_recent;     /* ever */

    struct least_loaded pool; /* kind pool only */

    struct list observers;  /* watches of this actor */
    struct list monitoring; /* its own */
    struct list asks;       /* its open ones */
    struct index asks_by_cookie, monitoring_by_reference, schedules_by_type, schedules_by_setter;
    struct list names;            /* actor_name, that it gave itself */
    struct list schedules;        /* timers that will tell it something */
    struct schedule_share timers; /* that it has set */
    struct exchange_subscriber subscriptions;
    unsigned n_asks, n_monitoring, n_names;
    struct list blocked;      /* actors that wait for room here (Overflow=block): blocked_link */
    struct list blocked_link; /* in the recipient's list */
};

struct actor_name {
    struct list link; /* in its actor's list */
    struct actor *actor;
    char *name;
};

struct actor_table {
    struct actor **entries; /* NULL = free */
    uint32_t *generations;
    uint32_t *free; /* indices, a stack */
    size_t n_entries, n_allocated, n_free;
    uint32_t n_exchanges;
    void *names;          /* tree of actor_name */
    uint64_t last_client; /* "@N" */
    uint64_t last_id;     /* of a message */
    struct rate told;     /* events of messages' ends */
    usec_t turn;          /* loop_now() when `realtime` was read: once a turn is enough */
    usec_t realtime;
};

/* clang-format off */
#define ACTOR_TABLE_NULL {0}
/* clang-format on */

void actor_table_deinit(struct actor_table *table); /* no actor is left */

/* `name` is copied. An actor that gets nothing yet. 0 or -ENOMEM. */
int actor_new(struct actor **ret, struct context *context, enum actor_kind kind, const char *name);
/* Out of the table at once: its reference is dead. Everything it had must have been let go of:
 * router_remove() is the way. */
struct actor *actor_free(struct actor *actor);

/* NULL if it is gone, or never was. */
struct actor *actor_get(const struct actor_table *table, uint64_t reference);

/* Iterates over all actors; NULL when done, `cursor` starts at 0. For status, not for work. */
struct actor *actor_next(const struct actor_table *table, size_t *cursor);

enum {
    _ACTOR_E_SUCCESS,
    ACTOR_E_EXISTS,   /* a group, an exchange or another actor has that name */
    ACTOR_E_BAD_NAME, /* not 1 to 255 characters of [A-Za-z0-9._:-], the first a letter or digit */
    ACTOR_E_TOO_MANY,
};

bool actor_name_valid(const char *name, size_t size);
/* A further name for an actor (for an exchange its own). 0 (also if it has it already), ACTOR_E_*,
 * or -ENOMEM. */
int actor_register(struct actor *actor, const char *name);
/* Makes its address known among the names: a client's. 0 or -ENOMEM. */
int actor_publish(struct actor *actor);
/* Whether it had that name. */
bool actor_deregister(struct actor *actor, const char *name);
/* Exchanges and registered names. NULL if there is none. */
struct actor *actor_by_name(const struct actor_table *table, const char *name);

/* "slot" …; static. */
const char *actor_kind_to_string(enum actor_kind kind);
/* The name of whom a reference means; "" for 0, "(gone)". Borrowed. */
const char *actor_name_of(const struct actor_table *table, uint64_t reference);

/* Who it is to others. */
struct actor *actor_self(struct actor *actor);

/* For a message that begins its way now. */
uint64_t actor_next_id(struct context *context);
usec_t actor_realtime(struct context *context);

/* The policies that apply to its mailbox; clients and exchanges have the defaults. */
struct actor_policy {
    uint64_t mailbox_max, mailbox_memory_max;
    enum config_overflow overflow;
    enum config_on_crash on_crash;
    unsigned message_retries;
};
struct actor_policy actor_policy(const struct actor *actor);
