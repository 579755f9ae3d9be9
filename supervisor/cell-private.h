/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the halves of a cell owe each other: cell.c has the queue, the pool and the matching of the
 * two; cell-job.c what an attempt comes to: a retry or the end.
 */

#include "cell.h"

#define job_of(node) list_entry(node, struct job, link)

/* The beginning of this turn, monotonic. */
usec_t cell_now(const struct cell *cell);

/* Have the cell look at queue and pool at the end of this turn. */
void cell_wake(struct cell *cell);

/* Puts a job in state queued into the queue. */
void cell_enqueue(struct cell *cell, struct job *job, bool first);

/* ---- cell-job.c ---- */

/* A job that is in none of the cell's lists reaches its end. `reason` NULL = nothing to say. */
void cell_end_job(struct cell *cell, struct job *job, enum job_state state, const char *reason);

/* A running job waits before its next attempt. */
void cell_back_off(struct cell *cell, struct job *job, usec_t delay);

/*
 * Kept results above InlineMax= hold a descriptor each, and workers need descriptors to be started:
 * the oldest ones, of whichever cell, make room for new blobs. Whether there is room now.
 */
bool cell_make_room_for_blob(struct cell *cell);

/* Lets go of a kept result. */
void cell_drop_result(struct cell *cell, struct job *job);
void cell_on_results_timer(struct timer *timer, usec_t now);
