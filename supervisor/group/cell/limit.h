/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A limit: how many units of jobs begin within a time (Rate=), and how many run (Running=). There
 * are three kinds: one that a file describes (NAME.limit), which groups share; a group's own; and
 * one of each routing key. Running= is a count of live jobs. A rate is one number (GCRA, ITU-T
 * I.371): the time at which a bucket that leaks at the rate is empty.
 *
 * Each limit has a line of waiters. A waiter is in one line at most, and only the first of a line
 * gets room, so none starves. At any time one of these is true of a line that is not empty, so none
 * waits forever:
 *  - a job that takes units of the limit is in the hands of a worker: limit_give() looks again;
 *  - a worker that may have such a job has not ended: limits_note_ending() looks again;
 *  - the timer is set to the time when the rate has room, or a claim ends;
 *  - the first waiter was given its turn. It takes what it needs, or leaves the line.
 * No step of this needs memory.
 */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "supervisor/config/config-group.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stdint.h>

struct limit;
struct loop;

enum limit_gate {
    LIMIT_NONE,
    LIMIT_RATE,
    LIMIT_RUNNING,
    LIMIT_UNREAD, /* the limits that were set at run time are not known yet */
};

#define LIMIT_NO_BOUNDS                                                                            \
    {                                                                                              \
        .burst = 1, .running = CONFIG_UNSET                                                        \
    }

static inline bool limit_has_rate(const struct config_bounds *bounds)
{
    return bounds->rate.n > 0;
}

static inline bool limit_has_bounds(const struct config_bounds *bounds)
{
    return limit_has_rate(bounds) || bounds->running != CONFIG_UNSET;
}

/* A cell or a key that waits for its next job; or a key without jobs that waits to be forgotten. */
struct limit_waiter {
    struct list link; /* in limit.line */
    struct limit *at; /* NULL = it does not wait */
    unsigned cost;    /* units that it needs */
    uint64_t tag;     /* its place in the line: see limit_wait() */
    unsigned charged; /* how much of it counts in the tag of its group */
    /* Called for the first waiter when there is room. It may leave the line. */
    void (*turn)(struct limit_waiter *waiter);
};

struct limit {
    const char *name; /* of the limit, or its group */
    struct loop *loop;
    struct config_bounds bounds; /* in force: limit_set_bounds() */
    uint64_t interval;           /* nanoseconds in which one unit leaks out; 0 = no rate */
    uint64_t empty_at;           /* monotonic, nanoseconds: when its bucket is empty */
    uint64_t taken;              /* units of the jobs that run */
    uint32_t n_ending;           /* workers whose jobs in hand are not known: nothing is free */
    struct list line;            /* struct limit_waiter.link, by their tags */
    uint64_t tag;                /* of the last waiter that was first and has left */
    struct timer timer;          /* when the rate has room, or a claim ends */
    struct list uses;            /* struct limit_use.link, of groups that use it */
    usec_t last_at, gap; /* monotonic: the last job began, so long after the one before it */
    usec_t held_since;   /* monotonic: no job has begun since, and some wait */
    struct limit_waiter *claimant; /* the only one that gets room; NULL = any */
    usec_t claim_until;
};

/* Makes a limit without bounds. */
void limit_init(struct limit *limit, const char *name, struct loop *loop);
/* No waiter may be in its line. */
void limit_deinit(struct limit *limit);
/* Sets other bounds, and lowers what the bucket holds to these. Call limit_review() afterwards. */
void limit_set_bounds(struct limit *limit, const struct config_bounds *bounds);
/* Fills the bucket as of `now`, monotonic nanoseconds: jobs that an earlier supervisor has begun
 * are not known. */
void limit_fill(struct limit *limit, uint64_t now);
/* Returns the beginning of this turn: monotonic, nanoseconds. */
uint64_t limit_now(const struct limit *limit);

/* Whether the gate, LIMIT_RATE or LIMIT_RUNNING, has no room for a job of this cost. A job that
 * needs more units than there are runs alone; one that needs more than the whole burst waits for an
 * empty bucket. */
bool limit_holds(const struct limit *limit, unsigned cost, enum limit_gate gate);
/* Whether the waiter may begin a job of this cost: there is room, and it is first. */
bool limit_lets(const struct limit *limit, const struct limit_waiter *waiter, unsigned cost);
/* Returns when the rate has room for a job of this cost: monotonic, microseconds. */
usec_t limit_room_at(const struct limit *limit, unsigned cost);

/* Has the waiter wait for a job of this cost, or with `first` before all others. If it waits here
 * already, it keeps its place. Groups with waiters share the units equally, however many waiters
 * each has: a waiter comes behind the `*tag` of its group, by its cost (start-time fair queueing:
 * Goyal, Vin, Cheng, 1996). NULL = behind all others. May call its turn(). */
void limit_wait(struct limit *limit, struct limit_waiter *waiter, unsigned cost, uint64_t *tag,
                bool first);
/* Idempotent. */
void limit_leave(struct limit_waiter *waiter);
/* Before limit_leave(): gives back to the group's tag what a waiter that had no turn has added. */
void limit_refund(struct limit_waiter *waiter, uint64_t *tag);
/* Call it when the waiter had its turn, but `other` holds it. If jobs begin there at least as often
 * as here, no other waiter gets room here for a time: otherwise, as long as other waiters need both
 * limits, this one might never get both. */
void limit_claim(struct limit *limit, struct limit_waiter *waiter, const struct limit *other);
/* Ends a claim. */
void limit_unclaim(struct limit *limit);
/* Gives the first waiter its turn, or sets the timer. Called after each change. */
void limit_review(struct limit *limit);

/* Takes the units of a job that a worker gets, or gives them back when the worker has it no longer.
 * `counts` = for the rate too. */
void limit_take(struct limit *limit, unsigned cost, bool counts);
void limit_give(struct limit *limit, unsigned cost, bool counts);

/* Returns how long waiters have waited since a job began; 0 = none waits. */
usec_t limit_held(const struct limit *limit);
/* Returns how many units the rate permits now: at most the burst. */
uint64_t limit_ready(const struct limit *limit);
