/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Internal interface between cell-*.c:
 *
 *   cell.c              the queue, and the matching of jobs to slots
 *   cell-submit.c       accepts jobs
 *   cell-room.c         the bounds of the queue, and who waits for room
 *   cell-attempt.c      what becomes of an attempt: a result, a retry, a dead job
 *   cell-end.c          the end of a job
 *   cell-dead-letter.c  keeps a dead job
 *   cell-progress.c     NoProgressSec=
 *   cell-idle.c         CellIdleSec=: retires a cell without jobs
 */

#include "supervisor/group/cell/cell-submit.h"
#include "supervisor/group/cell/cell.h"

#define job_of(node) list_entry(node, struct job, link)

/* The beginning of this turn, monotonic. */
usec_t cell_now(const struct cell *cell);

/* Have the cell look at queue and pool at the end of this turn. */
void cell_wake(struct cell *cell);

/* Puts a job in state queued into the queue. */
void cell_enqueue(struct cell *cell, struct job *job, bool first);

/* ---- cell-attempt.c, cell-end.c, cell-dead-letter.c ---- */

/* A dead job becomes a dead letter, which takes its payload over. */
void cell_write_envelope(struct cell *cell, struct job *job);

/* A job that is in none of the cell's lists reaches its end. `reason` NULL = nothing to say. */
void cell_end_job(struct cell *cell, struct job *job, enum job_state state, const char *reason);
/* The same for one whose cancellation was requested. */
void cell_end_cancelled(struct cell *cell, struct job *job);

/* The deadline of a job is over: it is cancelled. */
void cell_on_deadline(struct timer *timer, usec_t now);

/* A running job waits before its next attempt. */
void cell_back_off(struct cell *cell, struct job *job, usec_t delay);

/* A new job waits for the time that the request says. 0 or -ENOMEM. */
int cell_delay(struct cell *cell, struct job *job, const struct cell_request *request);

/* ---- cell-room.c ---- */

/* 0 = there is room for this, CELL_E_BUSY, or CELL_E_WAIT: the waiter will be told. */
int cell_find_room(struct cell *cell, const struct cell_request *request);

/* Not above what the limits are with nothing else in the queue. */
bool cell_may_ever_fit(const struct cell *cell, uint64_t size);

/* After a change of the limits: whoever waits and can never fit any more has to ask again, and is
 * refused then. Nobody waits behind what cannot be. */
void cell_turn_away_misfits(struct cell *cell);

/* As many of those who wait as there are places now are told. */
void cell_call_waiters(struct cell *cell);

/* The pool's word about a job: see struct pool_handler. */
void cell_job_started(struct pool *pool, struct job *job);
void cell_job_answered(struct pool *pool, struct job *job, const char *worker,
                       enum protocol_outcome outcome, int32_t code, struct payload *result);
void cell_job_returned(struct pool *pool, struct job *job);
void cell_job_lost(struct pool *pool, struct job *job, const struct death *death);

/* ---- cell-idle.c ---- */

void cell_on_idle_timer(struct timer *timer, usec_t now);
