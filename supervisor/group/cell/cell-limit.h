/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Limits of a group's jobs: how many begin within a time (Rate=), and how many run (Running=), in
 * the whole group or for each routing key.
 *
 * A limit of the group holds its cells, which take turns. A limit per key holds the jobs of that
 * key only: they are set aside in a line, and return to the queue one by one. What runs is a count
 * over live jobs. A rate is one number for each line, in virtual time (GCRA, ITU-T I.371): when a
 * bucket that leaks at the rate is empty. A line that has no jobs and an empty bucket is freed. Of
 * those that have no jobs, LIMIT_IDLE_MAX are kept, so that new keys do not take memory without
 * end.
 */

#include "shared/base/clock.h"
#include "shared/base/heap.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "supervisor/config/config-group.h"
#include "supervisor/job/queue.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stdint.h>

struct cell;
struct job;
struct loop;

#define LIMIT_IDLE_MAX 100000

/* The jobs of a group, or of one of its keys, under its limits. */
struct limit_line {
    struct index_entry by_key;
    struct heap_node by_time; /* in limits.times: when it is looked at again */
    uint64_t empty_at;        /* monotonic, nanoseconds: when its bucket is empty */
    struct list link;         /* in cell.lines, while it holds jobs; in limits.idle */
    struct list all_link;     /* in limits.all */
    struct queue *held;       /* jobs set aside; NULL = none */
    struct cell *cell;        /* theirs */
    uint64_t n_running;       /* of a key */
    bool returned;            /* a job of it has returned to the queue */
    bool idle;                /* no job has its key, but its bucket is not empty */
    uint8_t key_size;
    char *key; /* behind the struct; NULL = none */
};

struct limits {
    const struct config_group *config;
    struct loop *loop;
    const uint64_t *n_running; /* of the group */
    uint64_t full_at;          /* as `empty_at`: of buckets that are not known */
    struct limit_line group;   /* of all jobs, without held ones */
    struct list blocked;       /* struct cell.limit_link: cells that a limit of the group holds */
    struct index keys;         /* struct limit_line.by_key */
    struct list all;           /* struct limit_line.all_link */
    struct list idle;          /* struct limit_line.link, the one used last at the end */
    uint64_t n_idle;
    struct heap times;  /* struct limit_line.by_time */
    struct timer timer; /* of the first of them */
    uint64_t n_aside;   /* jobs in lines */
};

/* `n_running`: the jobs of the group that run. */
void limits_init(struct limits *limits, const struct config_group *config, struct loop *loop,
                 const uint64_t *n_running);
/* An earlier supervisor has begun jobs, and their number is not known: takes each bucket for full.
 */
void limits_take_over(struct limits *limits);
void limits_deinit(struct limits *limits); /* no job is left */
/* The configuration changes: all jobs return to the queue, and none counts as running until
 * limits_begin() is called for it again; then limits_end_change(). */
void limits_change(struct limits *limits, const struct config_group *config);
void limits_end_change(struct limits *limits);

/* Inline: asked for each job. */
static inline bool limits_exist(const struct limits *limits)
{
    return limits->config->rate.n > 0 || limits->config->running != CONFIG_UNSET;
}

/* Whether a limit of the group holds cells. Inline, like limits_exist(). */
static inline bool limits_block(const struct limits *limits)
{
    return !list_empty(&limits->blocked);
}

enum limit_gate {
    LIMIT_NONE,
    LIMIT_RATE,
    LIMIT_RUNNING,
};

/* Returns which limit of its group, or of its key, keeps the job from beginning. `*ret_at`:
 * monotonic, when that of a rate is over. `*ret_per`: whose limit it is. */
enum limit_gate limits_of_job(const struct limits *limits, const struct job *job, usec_t *ret_at,
                              enum config_limit_per *ret_per);
/* Returns which limit of the group holds cells that have jobs. */
enum limit_gate limits_of_group(const struct limits *limits, usec_t *ret_at);

enum limit_verdict {
    LIMIT_PASSES,
    LIMIT_ASIDE, /* the job is in no queue any more */
    LIMIT_STOPS, /* the job cannot be set aside: it stays, and holds the others */
};

/* Decides about the next job of the cell's queue by the limits of its key. */
enum limit_verdict limits_review_job(struct limits *limits, struct cell *cell, struct job *job);
/* Whether a limit of the group holds the cell, which then waits for its turn. */
bool limits_hold_cell(struct limits *limits, struct cell *cell);
/* Takes the cell's turn, if it has it: called before its jobs are handed out. */
void limits_begin_turn(struct limits *limits, struct cell *cell);
/* Wakes the next cell that waits, if it may continue: called afterwards. */
void limits_pass_on(struct limits *limits);

/* Takes out a job that was set aside. */
void limits_take_out(struct limits *limits, struct job *job);
/* The job leaves the queue, to which it may have returned from a line. */
void limits_leave_queue(struct limits *limits, struct job *job);

/* A worker gets the job; `counts` = it counts for the rate. Returns 0 or -ENOMEM. */
int limits_begin(struct limits *limits, struct job *job, bool counts);
/* The worker has it no longer. `counted`: see limits_begin(); false = it had not begun it. */
void limits_end(struct limits *limits, struct job *job, bool counted);
