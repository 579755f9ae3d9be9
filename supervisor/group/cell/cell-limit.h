/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The limits of a group's jobs: its own ([Limits]), those that it uses (NAME.limit), and those of
 * each routing key (RatePer=key, RunningPer=key).
 *
 * A limit of the whole group holds its cells: see cell-limit-gate.h. A limit per key holds the jobs
 * of that key only: they are set aside in a line, and return to the queue one by one. A line that
 * has no jobs and an empty bucket is freed. Of those that have no jobs, LIMIT_IDLE_MAX are kept, so
 * that new keys do not take memory without end.
 */

#include "shared/base/clock.h"
#include "shared/base/heap.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "supervisor/group/cell/cell-limit-gate.h"
#include "supervisor/group/cell/job-stats.h"
#include "supervisor/job/queue.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stdint.h>

struct cell;
struct job;

#define LIMIT_IDLE_MAX 100000

/* The jobs of a key. */
struct limit_line {
    struct index_entry by_key;
    struct heap_node by_time; /* in limits.times: when it is looked at again */
    struct config_bounds bounds;
    struct limit_level level;
    struct list link;     /* in cell.lines, while it holds jobs; in limits.idle */
    struct list all_link; /* in limits.all */
    struct queue *held;   /* jobs set aside; NULL = none */
    struct cell *cell;    /* theirs */
    uint32_t change;      /* limits.n_changes when its level was counted */
    uint32_t seen;        /* limits.n_reviews when it was looked at */
    bool returned;        /* a job of it has returned to the queue */
    bool idle;            /* no job has its key, but its bucket is not empty */
    uint8_t key_size;
    char key[];
};

struct limits {
    const struct config_group *config;
    struct loop *loop;
    const struct job_counts *counts; /* of the group */
    struct limit own;
    struct limit_use uses[1 + CONFIG_USES_MAX]; /* the first is of `own` */
    size_t n_uses;
    bool by_key; /* `key_bounds` has some */
    struct config_bounds key_bounds;
    uint64_t taken_over;  /* monotonic, nanoseconds: see limits_take_over(); 0 = not */
    uint32_t n_changes;   /* of the bounds */
    uint32_t n_reviews;   /* of all lines */
    uint32_t n_uncounted; /* jobs in hand for whose key there was no memory */
    struct index keys;    /* struct limit_line.by_key */
    struct list all;      /* struct limit_line.all_link; those not seen in the last review first */
    struct list idle;     /* struct limit_line.link, the one used last at the end */
    uint64_t n_idle;
    struct heap times;  /* struct limit_line.by_time */
    struct timer timer; /* of the first of them */
    struct loop_deferred review;
    uint64_t n_aside;   /* jobs in lines */
    usec_t aside_since; /* monotonic: no job has left a line since */
};

/* `counts`: of the group. limits_change(), and limits_add_use() for each limit of Uses=, follow. */
void limits_init(struct limits *limits, const char *name, struct loop *loop,
                 const struct job_counts *counts);
/* An earlier supervisor has begun jobs, and their number is not known: takes each bucket for full.
 */
void limits_take_over(struct limits *limits);
void limits_deinit(struct limits *limits); /* no job is left */
/* The bounds, which may differ from those of the file, change: no job counts as running until
 * limits_begin() is called for it again; then limits_end_change(). Lines are looked at in later
 * turns. */
void limits_change(struct limits *limits, const struct config_group *config,
                   const struct config_bounds *bounds);
/* Does nothing if the group uses the limit already. */
void limits_add_use(struct limits *limits, struct limit *limit);
void limits_end_change(struct limits *limits);

/* Inline: asked for each job. */
static inline bool limits_exist(const struct limits *limits)
{
    return limits->n_uses > 0 || limits->by_key || limits->keys.n_entries > 0;
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

/* For how long jobs have waited in lines since one left a line; 0 = none waits. */
usec_t limits_held_aside(const struct limits *limits);

enum limit_verdict {
    LIMIT_PASSES,
    LIMIT_ASIDE, /* the job is in no queue any more */
    LIMIT_STOPS, /* the job cannot be set aside: it stays, and holds the others */
};

/* Decides about the next job of the cell's queue by the limits of its key. */
enum limit_verdict limits_review_job(struct limits *limits, struct cell *cell, struct job *job);
/* Whether a limit holds the cell, whose next job this is, and which then waits for its turn. */
bool limits_hold_cell(struct limits *limits, struct cell *cell, const struct job *job);
/* Takes the cell's turn, if it has it: called before its jobs are handed out. */
void limits_begin_turn(struct cell *cell);
/* Wakes the next cells that wait, if they may continue: called afterwards. */
void limits_end_turn(struct limits *limits, struct cell *cell);
void limits_pass_on(struct limits *limits);

/* Takes out a job that was set aside. */
void limits_take_out(struct limits *limits, struct job *job);
/* The job leaves the queue, to which it may have returned from a line. */
void limits_leave_queue(struct limits *limits, struct job *job);

/* A worker gets the job; `counts` = it counts for the rate. Returns 0, or only with `counts`
 * -ENOMEM. */
int limits_begin(struct limits *limits, struct job *job, bool counts);
/* A worker has the job of limits_begin() no longer. `counted`: false = it had not begun it. */
void limits_end(struct limits *limits, struct job *job, bool counted);
