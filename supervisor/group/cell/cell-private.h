/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between cell-*.c. */

#include "supervisor/group/cell/cell-submit.h"
#include "supervisor/group/cell/cell.h"

#define job_of(node) list_entry(node, struct job, link)

/* The beginning of this turn, monotonic. */
usec_t cell_now(const struct cell *cell);

static inline struct timer_queue *cell_timers(const struct cell *cell)
{
    return loop_timers(cell->context->loop);
}

/* Steps the pool, matches jobs and slots, and calls waiters at the end of this turn. */
void cell_wake(struct cell *cell);

/* Puts a job in state queued into the queue, behind or before those of its priority. */
void cell_enqueue(struct cell *cell, struct job *job, bool first);
/* The same for a job in another state: sets it to queued first. */
void cell_requeue(struct cell *cell, struct job *job, bool first);

/* Cancels a job whose deadline is over. */
void cell_on_deadline(struct timer *timer, usec_t now);

/* ---- cell-attempt.c ---- */

/* A running job waits before its next attempt. */
void cell_back_off(struct cell *cell, struct job *job, usec_t delay);
/* A new job waits for the time of the request. Returns 0 or -ENOMEM. */
int cell_delay(struct cell *cell, struct job *job, const struct cell_request *request);

/* See struct pool_handler. */
void cell_job_started(struct pool *pool, struct job *job);
void cell_job_answered(struct pool *pool, struct job *job, const char *worker,
                       enum protocol_outcome outcome, int32_t code, struct payload *result);
void cell_job_returned(struct pool *pool, struct job *job);
void cell_job_lost(struct pool *pool, struct job *job, const struct death *death);

/* ---- cell-end.c ---- */

/* Ends a job that is in no list of the cell. `reason` NULL = none. */
void cell_end_job(struct cell *cell, struct job *job, enum job_state state, const char *reason);
/* Ends one whose cancellation was requested. */
void cell_end_cancelled(struct cell *cell, struct job *job);

/* ---- cell-room.c ---- */

/* Returns 0 = the queue has room, CELL_E_BUSY, or CELL_E_WAIT. */
int cell_find_room(struct cell *cell, const struct cell_request *request);
/* Whether a payload of this size fits into an empty queue. */
bool cell_may_ever_fit(const struct cell *cell, uint64_t size);
/* Calls all waiters whose job does not fit any more after a change of the limits. */
void cell_turn_away_misfits(struct cell *cell);
/* Calls as many waiters as there is room for. */
void cell_call_waiters(struct cell *cell);

/* ---- cell-idle.c ---- */

void cell_on_idle_timer(struct timer *timer, usec_t now);
