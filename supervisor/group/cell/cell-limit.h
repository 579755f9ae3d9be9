/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The limits of a group's jobs: its own ([Limits]), those that it uses (NAME.limit), and those of
 * each routing key (RatePer=key, RunningPer=key). limit.h describes one.
 *
 *     queued ── limits_review() ──→ passes ── limits_begin() ──→ running: it takes units
 *       │                                          limits_end() gives them back: the next of
 *       │                                          each line has its turn
 *       ├─ a limit of the group, or one that it uses, holds: the job stays, and its cell
 *       │  waits in the line of that limit
 *       └─ a limit of its key holds: the job is set aside in the line of its key, and the
 *          jobs behind it go on. In its turn it returns to the queue, where the other
 *          limits are asked as for any job
 *
 * At most LIMIT_IDLE_MAX keys without jobs are kept, so that new keys do not take memory without
 * end.
 */

#include "shared/base/clock.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "supervisor/group/cell/job-stats.h"
#include "supervisor/group/cell/limit.h"
#include "supervisor/job/job.h"
#include "supervisor/job/queue.h"
#include "supervisor/loop/loop.h"
#include <stdbool.h>
#include <stdint.h>

struct cell;
struct limit_table;

#define LIMIT_IDLE_MAX 100000

/* A limit of a group: its own, or one that it uses. */
struct limit_use {
    struct limit *limit;
    struct limits *limits; /* of the group */
    struct list link;      /* in limit.uses */
    uint64_t n_cells;      /* of the group that wait */
    uint64_t tag;          /* of the last of them: see limit_wait() */
};

/* Whether the limits that were set at run time are known: the store may not be open yet. */
enum limits_known {
    LIMITS_KNOWN,
    LIMITS_AWAITED, /* until it turns out that the store cannot be read soon */
    LIMITS_SET,     /* some were set: until they are known */
};

struct limits {
    const struct config_group *config;
    const struct limit_table *table;
    struct loop *loop;
    const struct job_counts *counts; /* of the group */
    struct limit own;
    struct limit_use uses[1 + CONFIG_USES_MAX]; /* the first is of `own` */
    size_t n_uses;
    enum limits_known known;     /* no job begins before LIMITS_KNOWN */
    bool by_key;                 /* there are limits of keys */
    bool keys_set;               /* some have bounds of their own */
    struct config_bounds bounds; /* of [Limits], or as set at run time */
    struct config_bounds key_bounds;
    uint64_t taken_over;       /* monotonic, nanoseconds: see limits_take_over(); 0 = not */
    uint32_t n_changes;        /* of the bounds of keys */
    uint32_t n_ending;         /* workers of the group whose jobs in hand are not known */
    uint32_t n_uncounted;      /* jobs in hand for whose key there was no memory */
    uint64_t n_counted;        /* jobs in hand that are counted by their keys: job.limited */
    struct index keys;         /* struct limit_key.by_key */
    struct list all;           /* struct limit_key.all_link: those that are up to date */
    struct list changed;       /* struct limit_key.all_link: the others */
    struct loop_deferred look; /* at `changed` */
    struct list idle;          /* struct limit_key.link, the one used last at the end */
    uint64_t n_idle;
    uint64_t n_aside;   /* jobs that keys hold */
    usec_t aside_since; /* monotonic: none has returned since */
};

/* `counts`: of the group. limits_change() follows. */
void limits_init(struct limits *limits, const char *name, const struct limit_table *table,
                 const struct job_counts *counts);
/* An earlier supervisor has begun jobs whose number is not known: fills each bucket. */
void limits_take_over(struct limits *limits);
/* Changes the number of workers whose jobs in hand are not known. While there is one, the limits of
 * the group count as reached. */
void limits_note_ending(struct limits *limits, int change);
void limits_deinit(struct limits *limits); /* no job is left */
/* Whether Uses= of the configuration is another one. */
bool limits_use_others(const struct limits *limits, const struct config_group *config);
/* The bounds change; limits_end_change() follows. Before, limits_leave() is called for all cells if
 * limits_use_others(). limit_table_reserve() has made the limits of Uses=. What runs is counted
 * already, except by keys: see limits_lack_keys(). */
void limits_change(struct limits *limits, const struct config_group *config);
void limits_end_change(struct limits *limits);
/* Whether there are limits of keys, and jobs in hand that are not counted by theirs. These are to
 * be counted by limit_keys_begin(); until then, limits_note_ending() keeps others from beginning.
 */
bool limits_lack_keys(const struct limits *limits);
/* The bounds of a key change, which takes effect at once; its jobs are looked at in later turns.
 * Returns false if jobs have not been counted by their keys so far: limits_change() is needed. */
bool limits_change_keys(struct limits *limits);
/* Whether a limit of its jobs was set at run time, or may have been. */
bool limits_are_set(const struct limits *limits);

/* Inline: asked for each job. A job that is not counted has a key. */
static inline bool limit_keys_exist(const struct limits *limits)
{
    return limits->by_key || limits->keys.n_entries > 0 || limits->n_uncounted > 0;
}
static inline bool limits_exist(const struct limits *limits)
{
    return limits->n_uses > 1 || limit_has_bounds(&limits->own.bounds) ||
           !list_empty(&limits->own.line) || limit_keys_exist(limits) ||
           limits->known != LIMITS_KNOWN;
}

/* What keeps a job from beginning. */
struct limit_hold {
    enum limit_gate gate;
    const struct limit *limit; /* NULL = that of its key */
    usec_t until;              /* monotonic, with LIMIT_RATE */
    uint64_t taken, units;     /* with LIMIT_RUNNING */
};

/* Returns the first limit that holds the job. */
struct limit_hold limits_of_job(const struct limits *limits, const struct job *job);
/* Returns the first limit that holds cells of the group that have jobs. */
struct limit_hold limits_of_group(const struct limits *limits);

/* For how long jobs have been set aside since one returned; 0 = none is. */
usec_t limits_held_aside(const struct limits *limits);

enum limit_verdict {
    LIMIT_PASSES,
    LIMIT_ASIDE, /* the job is in no queue any more */
    LIMIT_STOPS, /* it stays, and its cell is woken later */
    LIMIT_LATER, /* there is no memory to set it aside */
};

/* Decides about the next job of the cell's queue. */
enum limit_verdict limits_review(struct limits *limits, struct cell *cell, struct job *job);
/* Call it when jobs of the cell were handed out: unless the last one was held, the cell leaves its
 * turn to others. */
void limits_end_turn(struct limits *limits, struct cell *cell);
/* The cell no longer waits. Idempotent. */
void limits_leave(struct limits *limits, struct cell *cell);

/* Takes out a job that was set aside. */
void limits_take_out(struct limits *limits, struct job *job);
/* The job leaves the queue, to which it may have returned. */
void limits_leave_queue(struct limits *limits, struct job *job);

/* A worker gets the job; `counts` = it counts for the rate. Returns 0, or only with `counts`
 * -ENOMEM. */
int limits_begin(struct limits *limits, struct job *job, bool counts);
/* A worker has the job of limits_begin() no longer. `counted`: false = it had not begun it. */
void limits_end(struct limits *limits, struct job *job, bool counted);

/* Like limits_begin() and limits_end(), but also for a group without limits: then, only its units
 * in hand are counted, in case limits come later. Inline: called for each job. */
static inline int limits_begin_any(struct limits *limits, struct job *job, bool counts)
{
    if (limits_exist(limits))
        return limits_begin(limits, job, counts);
    limits->own.taken += job_cost(job);
    return 0;
}
static inline void limits_end_any(struct limits *limits, struct job *job, bool counted)
{
    if (limits_exist(limits) || job->limited)
        limits_end(limits, job, counted);
    else
        limits->own.taken -= job_cost(job);
}
