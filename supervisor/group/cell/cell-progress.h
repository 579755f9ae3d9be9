/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * NoProgressSec=: restarts the workers of a cell that has work but makes no progress for that long.
 * Progress is a job that is handed out, begun, ended or given back, and a state page that a worker
 * publishes. The arrival of a job is no progress: it would hide a pool that is stuck.
 *
 * The timer is armed while there is work. Progress only notes the time; the timer, when it fires,
 * finds out whether it is too early.
 */

#include "shared/base/clock.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stdint.h>

struct cell;

struct cell_progress {
    struct timer timer;
    usec_t moved_at; /* monotonic */
    uint64_t mark;   /* cell_progress_view.mark at that time */
};

struct cell_progress_view {
    usec_t period; /* USEC_INFINITY = off */
    bool has_work; /* jobs are queued or running */
    bool may_move; /* not paused, and a worker is up */
    uint64_t mark; /* changes with every published state page */
};

/* Returns whether the cell has stalled. `*ret_next` = when to look again; USEC_INFINITY = not
 * before there is work again. */
bool cell_progress_look(struct cell_progress *progress, const struct cell_progress_view *view,
                        usec_t now, usec_t *ret_next);

void cell_progress_init(struct cell *cell);
void cell_progress_deinit(struct cell *cell);

/* Called when there is work. */
void cell_progress_watch(struct cell *cell);
/* Called after a change of NoProgressSec=. */
void cell_progress_reset(struct cell *cell);
/* For cell_progress_moved(). */
void cell_progress_note(struct cell *cell);
