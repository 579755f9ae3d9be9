/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Replacing the workers of a pool without a dip: a successor is started beside the pool, takes over
 * the place when it is ready, and only then the old worker finishes what it has in hand and stops.
 * One place at a time: a pool of n never has more than n + 1 processes, and the next replacement
 * waits for the end of the one before.
 *
 * A service is not replaced but restarted in its place, still one after the other: two of it at
 * once would fight for its port or its lock.
 *
 * The slot beside the pool is pool->aside: a successor (replacement.old is the one it is to
 * succeed), or what is on its way out (replacement.old is NULL).
 */

#include "shared/base/list.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>

struct pool;
struct slot;

struct replacement {
    struct list wishes;    /* slots that want a successor, struct slot.wish_link, in order */
    struct slot *old;      /* keeps working while pool->aside comes up */
    struct slot *in_place; /* a service that is being restarted */
    bool rolling;          /* the pool is on its way to another program */
    bool stopped;          /* and did not get there */
    unsigned n_failed;     /* successors in a row that did not come up */
    struct timer retry;
};

void replacement_init(struct pool *pool);
void replacement_deinit(struct pool *pool);

/*
 * Wants a successor for a worker that is up, as soon as its turn comes. `reason` goes into the
 * event, static: "it has done 100 jobs". Wishing twice is once.
 */
void replacement_wish(struct slot *slot, const char *reason);

/* Whether a roll has stopped on its way; the pool set counts such pools. */
void replacement_set_stopped(struct pool *pool, bool stopped);

/* The place gets a new process, or none, by other ways: nothing is to be replaced any more. */
void replacement_forget(struct slot *slot);

/* ---- told by the pool and its slots ---- */

/* At the end of a turn: frees what has gone, begins what waits. */
void replacement_step(struct pool *pool);
/* The worker came up; a successor takes its place before it is announced. */
void replacement_on_ready(struct slot *slot);
/* The worker is dead or could not be started. */
void replacement_on_failure(struct slot *slot);
/* Everything that belongs to the place and not to its worker goes from one to the other; `old` is a
 * predecessor from now on, and who is beside it as before is the caller's to say. */
void replacement_give_place(struct slot *old, struct slot *successor);
/* The worker died while its successor is on its way up: that one takes over at once, ready or not.
 * False = there is none. */
bool replacement_take_over(struct slot *slot);
