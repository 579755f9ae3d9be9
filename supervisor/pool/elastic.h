/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Decides how many workers a pool with Size=LOW..HIGH has: a function of counts and of the time,
 * without side effects. Its owner calls it at each turn in which a job has come or ended or a
 * worker has changed, and at the time that it returned last.
 *
 * A pool wants as many workers as the load keeps busy (rate of arrival × time of a job), and those
 * that begin the waiting jobs within TargetWaitSec=, or within the time that a worker takes to
 * start, if that is longer. The pool has at most twice as many workers as are up, so that it at
 * most doubles in the time that a start takes. It loses one worker whenever it had more than wanted
 * throughout IdleSec=. For the same time after that, it grows only if jobs would otherwise wait for
 * more than half of TargetWaitSec=. Under pressure it does not grow, and if that does not help, it
 * becomes smaller by a quarter at a time. With a threshold for pressure, it grows only after the
 * time in which the pressure of the last new workers shows. If its highest number falls, it becomes
 * smaller at once.
 */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The configuration and other pools set these bounds. */
struct elastic_bounds {
    size_t low, high;
    bool shared; /* `high` is the pool's share of PoolMax= */
    usec_t target_wait, idle;
    usec_t settle; /* how long the pressure of new workers takes to show; 0 = no threshold */
};

/* What keeps a pool from having as many workers as it wants. */
enum elastic_hold {
    ELASTIC_FREE,
    ELASTIC_STARTING, /* until more workers are up */
    ELASTIC_SETTLING, /* until the pressure of the last new workers shows */
    ELASTIC_HIGHEST,  /* it has the highest number */
    ELASTIC_PRESSURE, /* it would make a shortage worse */
    ELASTIC_SHARE,    /* it has its share */
};

/* The pool at a moment. */
struct elastic_view {
    uint64_t n_entered;   /* attempts that have come to the queue, ever; may fall for a moment */
    uint64_t n_done;      /* attempts that workers have ended, ever */
    uint64_t n_queued;    /* jobs that a worker could begin */
    uint64_t n_running;   /* jobs in the hands of workers */
    size_t size, n_up;    /* workers that the pool should have, and those that are ready */
    usec_t start_time;    /* of one worker; 0 = not known */
    usec_t pressed_until; /* it does not grow before that time, monotonic */
    unsigned n_reliefs;   /* how often it was to become smaller by a quarter, ever */
};

/* Measurements. Valid when zeroed. */
struct elastic {
    usec_t seen_at; /* monotonic; 0 = never */
    uint64_t n_entered, n_done;
    uint64_t n_busy;      /* workers at that time */
    usec_t window_at;     /* when the present window began */
    uint64_t arrivals[2]; /* in the window before it, and in the present one */
    uint64_t busy_time;   /* of workers, in µs; old times fade */
    uint64_t busy_n;      /* attempts that ended in it */
    usec_t enough_since;  /* since when the pool has had more workers than wanted */
    usec_t shrunk_at;     /* 0 = never */
    usec_t grown_at;      /* 0 = never */
    unsigned n_reliefs;
    uint64_t wanted;        /* the last result, not bounded */
    enum elastic_hold hold; /* the last result */
    usec_t hold_since;
};

struct elastic_decision {
    size_t size; /* within the bounds */
    usec_t next; /* call again by then; USEC_INFINITY = only when something happens */
};

struct elastic_decision elastic_decide(struct elastic *elastic, const struct elastic_bounds *bounds,
                                       const struct elastic_view *view, usec_t now);

/* Returns how many workers the pool wants. Call it before a decision at the same time that may
 * depend on the result. */
uint64_t elastic_want(struct elastic *elastic, const struct elastic_bounds *bounds,
                      const struct elastic_view *view, usec_t now);

/* Returns how long a job occupies a worker, on average, as far as that is known. */
usec_t elastic_job_time(const struct elastic *elastic);
