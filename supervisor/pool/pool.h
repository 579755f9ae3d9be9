/* SPDX-License-Identifier: MIT */
#pragma once

/* A pool: the slots of one cell and their standbys. It starts, stops and replaces workers, and
 * lists those that can take a job. Its owner, who provides a pool_handler, has the jobs. */

#include "shared/base/list.h"
#include "shared/protocol/protocol.h"
#include "supervisor/config/sandbox/call-set.h"
#include "supervisor/event/death.h"
#include "supervisor/event/event.h"
#include "supervisor/event/output-log.h"
#include "supervisor/loop/timer.h"
#include "supervisor/message/delivery/least-loaded.h"
#include "supervisor/pool/census.h"
#include "supervisor/pool/pool-context.h"
#include "supervisor/pool/slot/lifecycle.h"
#include "supervisor/process/backoff.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actor;
struct blob_share;
struct config_group;
struct job;
struct job_page;
struct message_context;
struct payload;
struct pool;
struct slot;
struct slot_handler;

/* Calls to the owner of a pool, which must not free the pool. */
struct pool_handler {
    /* A slot can take a job, or pool_step() has something to do, at the end of this turn. */
    void (*wake)(struct pool *pool);
    /* Whether a job is queued that a slot could take. */
    bool (*has_job)(const struct pool *pool);
    void (*job_started)(struct pool *pool, struct job *job);
    /* A worker of the last supervisor has this job in hand. Returns it, running; or NULL: its end
     * is ignored. */
    struct job *(*job_resumed)(struct pool *pool, const struct job_page *page);
    /* A worker of the last supervisor, which had this job in hand and may have begun it, cannot be
     * taken over and is killed. */
    void (*job_missed)(struct pool *pool, const struct job_page *page);
    /* The worker's answer to the running attempt; moves `result`. With PROTOCOL_RETRY, `pause` is
     * the one before the next attempt; 0 = the job's policy decides. */
    void (*job_answered)(struct pool *pool, struct job *job, const char *worker,
                         enum protocol_outcome outcome, int32_t code, usec_t pause,
                         struct payload *result);
    /* The worker made a checkpoint of the running job; the bytes are those of the outbox. */
    void (*job_checkpoint)(struct pool *pool, struct job *job, const void *data, size_t size);
    /* The worker emitted an item for those who watch the running job. */
    void (*job_emitted)(struct pool *pool, struct job *job, const void *data, size_t size);
    /* The worker died before it began this job; this does not count as an attempt. */
    void (*job_returned)(struct pool *pool, struct job *job);
    /* The worker died with this job in hand. */
    void (*job_lost)(struct pool *pool, struct job *job, const struct death *death);
    /* All slots are stopped or failed. */
    void (*down)(struct pool *pool);
    /* A worker with the new program did not come up: the owner calls pool_halt_roll() for each of
     * its pools that rolls. */
    void (*roll_failed)(struct pool *pool);
};

/* Counts for monitoring. */
struct pool_tally {
    size_t n_in_state[_LIFECYCLE_N_STATES]; /* slots, with standbys */
    /* Since the group was loaded: */
    uint64_t n_died_of[_DEATH_N_CAUSES]; /* workers */
    uint64_t n_commands_died;            /* programs that workers ran */
    uint64_t n_restarts;                 /* after a death */
    uint64_t n_forks;                    /* workers that a template has forked */
};

/* Shared by the pools of a group, which owns it. */
struct pool_set {
    const struct pool_context *context;
    const char *name;         /* the group's; it outlives configurations */
    struct output_log output; /* what its workers write while they have a job */
    struct call_set calls;    /* those of SystemCallLog= that its workers have made */
    struct blob_share *blobs; /* that payloads sent by the workers count in */
    struct census census;
    uint64_t n_deaths; /* other than by a stop, and of programs that workers ran */
    size_t n_behind;   /* pools whose roll has stopped before its end */
    /* The highest of freed slots: later slots begin above it, so that no name has a generation
     * twice. The owner keeps it for the next supervisor. */
    uint64_t *generations;
    struct pool_tally tally;
};

static inline void pool_set_note_generation(struct pool_set *set, uint64_t generation)
{
    if (*set->generations < generation)
        *set->generations = generation;
}

/* Replaces workers, one after the other. */
struct replacement {
    struct list queue;     /* struct slot.replace_link of members, in order */
    struct slot *standby;  /* the successor that starts, or the predecessor that stops; or NULL */
    struct slot *in_place; /* a service that restarts; or NULL */
    bool rolling;          /* to another program */
    bool stopped;          /* the roll has stopped before its end */
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
    struct actor *actor;         /* of the whole pool; NULL for services; the owner's */
    struct least_loaded members; /* of the actor: slots by number of messages */
    struct slot **slots;         /* n_slots members; those from `size` on are retired */
    size_t n_slots;
    size_t size;
    struct list available;  /* struct slot.available_link: slots that can take a job */
    struct list reviews;    /* struct slot.review_link: places to look at */
    struct list spares_due; /* struct slot.review_link: places that get a spare by the timer */
    struct timer spare_timer;
    struct census census;
    uint64_t n_deaths; /* other than by a stop */
    usec_t start_time; /* how long a worker takes to start, on average; 0 = not known */
    struct replacement replacement;
    bool wanted;   /* its slots are to run */
    bool retiring; /* its owner frees it once its slots have stopped */
};

struct pool_options {
    const struct pool_handler *handler;
    struct pool_set *set;
    const struct config_group *config;
    const char *name, *key;
};

/* Begins without slots. The strings are the owner's. */
void pool_init(struct pool *pool, const struct pool_options *options);
/* Makes the actor of a pool that takes messages; before its slots. Returns 0 or -ENOMEM. */
int pool_new_actor(struct pool *pool, struct message_context *messages, uint8_t log);
/* All slots are stopped. */
void pool_deinit(struct pool *pool);

void pool_start(struct pool *pool);
/* Slots that the last supervisor had continue where they stopped, also those that retire. The
 * others start if the pool is wanted. */
void pool_resume(struct pool *pool);
void pool_stop(struct pool *pool, bool hurry);
void pool_restart(struct pool *pool);
void pool_reset(struct pool *pool);

/* Makes retired slots up to `size`. Returns 0, or -ENOMEM without a change. */
int pool_reserve(struct pool *pool, size_t size);
/* Sets a reserved size: slots beyond it retire, those within it start if the pool is wanted. */
void pool_set_size(struct pool *pool, size_t size);

/* Takes another configuration of the same group. Running workers continue; see pool_roll(). */
void pool_take_config(struct pool *pool, const struct config_group *config);
/* Replaces every worker, one after the other, because the program has changed; those that are not
 * up restart immediately. Stops at the first successor that does not come up. */
void pool_roll(struct pool *pool);
/* Replaces the workers that the last supervisor started by another configuration. */
void pool_roll_behind(struct pool *pool);
/* Stops a roll. Returns how many workers are not replaced. */
size_t pool_halt_roll(struct pool *pool);

/* Does what waits for the end of the turn; called after wake(). */
void pool_step(struct pool *pool);

/* Removes a slot that can take a job from the list of those; NULL = none. slot_assign() puts it
 * back if it can take one more. */
struct slot *pool_take_slot(struct pool *pool);

/* Iterates over all slots: the members, then their standbys. NULL when done; `cursor` starts at 0.
 */
struct slot *pool_next_slot(const struct pool *pool, size_t *cursor);
#define pool_each_slot(slot, pool)                                                                 \
    for (size_t slot##_at = 0; slot##_at != SIZE_MAX; slot##_at = SIZE_MAX)                        \
        for (struct slot *slot = NULL; (slot = pool_next_slot((pool), &slot##_at));)
/* Like pool_next_slot(), but for `n` places from `first` on, as far as there are as many. */
struct slot *pool_next_slot_of(const struct pool *pool, size_t first, size_t n, size_t *cursor);

/* Whether no retired slot is left. */
bool pool_is_trimmed(const struct pool *pool);

/* Returns the pool's name for events; NULL for the only pool of its group. */
static inline const char *pool_event_name(const struct pool *pool)
{
    return *pool->key ? pool->name : NULL;
}

/* Emits an event of this pool; the message is its name and the formatted text. */
void pool_tell(struct pool *pool, struct event event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
