/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * NoProgressSec=: a cell that has work and in which nothing moves for that long is restarted. What
 * moves: a job that is handed out, begun, ended or given back, and a state page that a worker
 * publishes. Jobs that merely arrive do not: they would hide a pool that is stuck.
 *
 * One timer per cell, armed while there is work. A move only notes the time: the timer finds out
 * when it fires that it fired too early.
 */

#include "shared/base/clock.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stdint.h>

struct cell;

struct progress {
    struct timer timer;
    usec_t moved_at; /* monotonic */
    uint64_t mark;   /* of the state pages, as they were then */
};

/* What there is to see when the timer fires. */
struct progress_view {
    usec_t period; /* USEC_INFINITY = nobody asks */
    bool has_work; /* jobs queued or running; not those that wait for their time */
    bool may_move; /* not paused, and somebody is there to do it */
    uint64_t mark; /* changes with every state page that is published */
};

/* Whether it has stalled. `*ret_next` = when to look again; USEC_INFINITY = not until there is work
 * again. */
bool progress_look(struct progress *progress, const struct progress_view *view, usec_t now,
                   usec_t *ret_next);

void progress_init(struct cell *cell);
void progress_deinit(struct cell *cell);

/* There is work (again). */
void progress_watch(struct cell *cell);
/* Another period. */
void progress_reset(struct cell *cell);
void progress_moved(struct cell *cell);
