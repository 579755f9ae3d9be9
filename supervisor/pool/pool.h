/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A pool: the places for workers of one cell, as many as its configuration or somebody else says,
 * and those who stand by for them. It starts and stops workers, replaces them, and keeps a list of
 * those that can take a job. What is done with jobs is its owner's, who hears of everything through
 * a pool_handler.
 */

#include "shared/base/list.h"
#include "shared/protocol/protocol.h"
#include "supervisor/event/event.h"
#include "supervisor/loop/timer.h"
#include "supervisor/message/delivery/least-loaded.h"
#include "supervisor/pool/census.h"
#include "supervisor/pool/pool-context.h"
#include "supervisor/process/backoff.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actor;
struct blob_share;
struct config_group;
struct job;
struct message_context;
struct payload;
struct pool;
struct slot;
struct slot_handler;

/* What the owner of a pool is told and asked. No function frees the pool. */
struct pool_handler {
    /* A slot can take a job, or pool_step() has something to do: at the end of this turn. */
    void (*wake)(struct pool *pool);
    /* Whether a job waits that a slot with room could get. */
    bool (*has_job)(const struct pool *pool);
    void (*job_started)(struct pool *pool, struct job *job);
    /* The worker's answer to the running attempt. `result` is moved from. */
    void (*job_answered)(struct pool *pool, struct job *job, const char *worker,
                         enum protocol_outcome outcome, int32_t code, struct payload *result);
    /* The worker died before it began this job: no attempt was made. */
    void (*job_returned)(struct pool *pool, struct job *job);
    /* The worker died with this job in hand. */
    void (*job_lost)(struct pool *pool, struct job *job, const struct death *death);
    /* All slots are stopped or failed. */
    void (*down)(struct pool *pool);
    /* Strategy=rest-for-one: ends the workers of other pools that go with one of this pool. Their
     * number. */
    unsigned (*take_along)(struct pool *pool);
    /* Workers that are held could start again: pool_release(), now or later. */
    void (*restart_due)(struct pool *pool);
    /* A worker with the new program did not come up: pool_halt_roll() for all that roll to it. */
    void (*roll_failed)(struct pool *pool);
};

/* What all pools of a group share; the group owns it. */
struct pool_set {
    const struct pool_context *context;
    struct blob_share *blobs; /* of what the workers send */
    struct census census;     /* of all slots */
    uint64_t n_deaths;        /* other than by a stop */
    size_t n_behind;          /* pools whose roll has stopped: see struct replacement */
    uint64_t generations; /* the highest of all slots that are gone: a name with its generation is
                             never used again */
};

/* Workers that are replaced by others, one after the other. */
struct replacement {
    struct list queue;     /* members to be replaced, struct slot.replace_link, in order */
    struct slot *standby;  /* the successor that comes up, or the predecessor that goes; or NULL */
    struct slot *in_place; /* a service that is being restarted; or NULL */
    bool rolling;          /* the pool is on its way to another program */
    bool stopped;          /* and did not get there */
    unsigned n_failed;     /* successors in a row that did not come up */
    struct timer retry;
};

struct pool {
    const struct pool_handler *handler;
    const struct slot_handler *slot_handler;
    struct pool_set *set;
    const struct pool_context *context;
    const struct config_group *config;
    const char *name;            /* "group" or "group/key"; the owner's */
    const char *key;             /* "" = the only pool of its group */
    struct actor *actor;         /* the pool as a whole; NULL for services; the owner's */
    struct least_loaded members; /* of the actor: the slots by how many messages they have */
    struct slot **slots;         /* 0 … n_slots-1, the ones from `size` on are draining */
    size_t n_slots;
    size_t size;            /* wanted */
    struct list available;  /* slots that can take a job, struct slot.available_link */
    struct list reviews;    /* members whose standby is to be looked at, struct slot.review_link */
    struct list spares_due; /* members that get a spare when this fires: */
    struct timer spare_timer;
    struct census census;
    uint64_t n_deaths; /* other than by a stop */
    struct replacement replacement;
    struct restart_tally tally; /* of all its workers, if Strategy= has them die together */
    bool release_due;           /* held slots start once all of them are down */
    bool wanted;                /* its slots are to run */
};

struct pool_options {
    const struct pool_handler *handler;
    struct pool_set *set;
    const struct config_group *config;
    const char *name, *key;
};

/* Without slots. The strings are the owner's. */
void pool_init(struct pool *pool, const struct pool_options *options);
/* Makes the actor of a pool that takes messages; before its slots. 0 or -ENOMEM. */
int pool_new_actor(struct pool *pool, struct message_context *messages, uint8_t log);
/* All slots are stopped. */
void pool_deinit(struct pool *pool);

void pool_start(struct pool *pool);
void pool_stop(struct pool *pool, bool hurry);
void pool_restart(struct pool *pool);
void pool_reset(struct pool *pool);

/* Makes slots up to `size`, stopped until pool_set_size() wants them. 0, or -ENOMEM and nothing has
 * changed. */
int pool_reserve(struct pool *pool, size_t size);
/* To a size that was reserved: new slots start if the pool is to run; the highest ones drain. */
void pool_set_size(struct pool *pool, size_t size);

/* Another configuration for the same group. Running workers go on; see pool_roll(). */
void pool_take_config(struct pool *pool, const struct config_group *config);
/* Another program: every worker gets a successor, slot by slot; those that are not up are started
 * again at once. Ends with the first successor that does not come up. */
void pool_roll(struct pool *pool);
/* Gives up a roll. How many workers are not replaced. */
size_t pool_halt_roll(struct pool *pool);

/* Ends all workers because of another pool's; they start again after pool_release(). Their number.
 */
unsigned pool_hold(struct pool *pool);
/* Those that are held start once all of them are down. */
void pool_release(struct pool *pool);

/* After wake(): starts and frees whatever waits for the end of the turn. */
void pool_step(struct pool *pool);

/* A slot that can take a job, off the list of those; NULL = there is none. slot_assign() puts it
 * back if it can take one more. */
struct slot *pool_take_slot(struct pool *pool);

/* All slots: the members by their number, then their standbys. NULL when done; `cursor` starts at
 * 0. */
struct slot *pool_next_slot(const struct pool *pool, size_t *cursor);

/* The pool is as large as it is to be: no slot is left over that is on its way out. */
bool pool_is_trimmed(const struct pool *pool);
/* No slot is left at all. */
bool pool_is_empty(const struct pool *pool);

/* The name that an event gives the pool; NULL if it is all of its group. */
static inline const char *pool_event_name(const struct pool *pool)
{
    return *pool->key ? pool->name : NULL;
}

/* Emits an event of this pool; the message is its name and the formatted text. */
void pool_tell(struct pool *pool, struct event event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
