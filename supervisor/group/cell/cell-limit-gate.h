/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A limit: how many units of jobs begin within a time (Rate=), and how many run (Running=). One is
 * described by a file, and shared by the groups that use it, or it is a group's own.
 *
 * It holds cells, which take turns: the one that has waited for the longest time is first, for one
 * job. What runs is a count over live jobs. A rate is one number, in virtual time (GCRA, ITU-T
 * I.371): when a bucket that leaks at the rate is empty.
 */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "supervisor/config/config-group.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stdint.h>

struct cell;
struct loop;

enum limit_gate {
    LIMIT_NONE,
    LIMIT_RATE,
    LIMIT_RUNNING,
};

/* The units of a limit that are taken. */
struct limit_level {
    uint64_t empty_at; /* monotonic, nanoseconds: when its bucket is empty */
    uint64_t taken;    /* units of the jobs that run */
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

/* Monotonic, nanoseconds. */
uint64_t limit_now(const struct loop *loop);
/* When a job of so many units may begin by the rate. A job that needs more than the whole burst
 * waits for an empty bucket. */
uint64_t limit_room_at(const struct config_bounds *bounds, const struct limit_level *level,
                       unsigned cost);
/* Whether the limit holds a job of so many units for this reason. One that needs more units than
 * there are runs alone. */
bool limit_level_holds(const struct config_bounds *bounds, const struct limit_level *level,
                       unsigned cost, enum limit_gate gate, uint64_t now);
/* A full bucket, after which as much may begin as after the last job of a burst. */
uint64_t limit_full_at(const struct config_bounds *bounds, uint64_t now);
/* A worker gets a job, or has it no longer; `counts` = it counts for the rate. */
void limit_level_take(const struct config_bounds *bounds, struct limit_level *level, unsigned cost,
                      bool counts, uint64_t now);
void limit_level_give(const struct config_bounds *bounds, struct limit_level *level, unsigned cost,
                      bool counts);

/* A limit of a group: its own, or one that it uses. */
struct limit_use {
    struct limit *limit;
    struct limits *limits; /* of the group */
    struct list link;      /* in limit.uses */
    uint64_t taken;        /* units of the group's jobs */
    uint64_t n_cells;      /* of the group that wait */
};

struct limit {
    const char *name; /* of the limit, or its group */
    struct loop *loop;
    struct config_bounds bounds; /* in force */
    struct limit_level level;
    struct list uses;      /* struct limit_use.link */
    struct list waiting;   /* struct cell.limit_link, the one whose turn is next first */
    struct timer timer;    /* when the rate has room again, or a claim ends */
    usec_t last_at, gap;   /* monotonic: the last job began; between it and the one before */
    usec_t held_since;     /* monotonic: no job has begun since, and cells wait */
    struct cell *claimant; /* the only cell whose job may begin; NULL = all */
    usec_t claim_until;
};

void limit_init(struct limit *limit, const char *name, struct loop *loop);
void limit_deinit(struct limit *limit); /* no cell waits */
/* Other bounds: what the bucket holds does not exceed them. */
void limit_set_bounds(struct limit *limit, const struct config_bounds *bounds);

bool limit_holds(const struct limit *limit, unsigned cost, enum limit_gate gate);
/* Whether another cell is to have what the limit permits next. */
bool limit_is_others(const struct limit *limit, const struct cell *cell);
/* Lets the cell wait for so many units, with `first` in front of the others. */
void limit_wait(struct limit_use *use, struct cell *cell, unsigned cost, bool first);
/* Idempotent. */
void limit_leave(struct cell *cell);
/* The cell had its turn, but `other` holds it. If jobs begin there at least as often as here, no
 * other cell gets its turn here until then: otherwise the cell would get neither as long as others
 * want both. */
void limit_claim(struct limit *limit, struct cell *cell, const struct limit *other);
/* Wakes the first cell that waits, if it may continue. */
void limit_pass_on(struct limit *limit);

void limit_take(struct limit_use *use, unsigned cost, bool counts);
void limit_give(struct limit_use *use, unsigned cost, bool counts);
/* For how long cells have waited since a job began; 0 = none waits. */
usec_t limit_held(const struct limit *limit);
/* How many units the rate permits at this time: at most the burst. */
uint64_t limit_ready(const struct limit *limit);
