/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between plan.c (times), plan-decide.c (the outcome of slots), plan-job.c
 * (jobs) and plan-row.c (the row in the store). */

#include "supervisor/schedule/plan.h"

static inline usec_t usec_of(int64_t seconds)
{
    return (usec_t)seconds * USEC_PER_SEC;
}

/* Takes up the slots that are due, a bounded number, and waits for the next one. */
void plan_step(struct plan *plan);
/* Notes the outcome of a slot, or of a job on request, and reports it. */
void plan_note(struct plan *plan, int64_t slot, enum slot_outcome outcome, enum slot_cause cause);
/* Notes an outcome in this row only. */
void plan_note_in(const struct plan *plan, struct schedule_row *row,
                  const struct decided_slot *slot);
/* Ends a slot that was taken up: notes its outcome. */
void plan_decide(struct plan *plan, int64_t slot, enum slot_outcome outcome, enum slot_cause cause);

/* Submits the slot's job, and decides the slot when the group has answered. If the group is not
 * durable, a row that says so is written first. */
void plan_fire(struct plan *plan, int64_t slot, enum slot_cause cause);
/* Whether the slot has a job that was accepted; then watches it. */
bool plan_has_job(struct plan *plan, int64_t slot);
/* Cancels the live jobs. */
void plan_cancel_jobs(struct plan *plan);
/* Whether the slot has a job that has not ended, in memory or on disk. */
bool plan_job_is_live(const struct plan *plan, int64_t slot);
/* Finds the live jobs of the slots that were fired last. Returns false while it reads from disk. */
bool plan_attach(struct plan *plan);
/* Forgets all jobs. */
void plan_drop_jobs(struct plan *plan);

/* Has the row written, which has changed: now, or after the write that is in progress. */
void plan_write_row(struct plan *plan);
/* If the job, which was created in this turn, is durable: has it and `row` written in one
 * transaction. */
void plan_write_row_with(struct plan *plan, struct job *job, const struct schedule_row *row);
/* Whether the row is being written. A store that has failed is not waited for. */
bool plan_awaits_row(const struct plan *plan);
/* Leaves a write that is in progress to the store. */
void plan_forget_write(struct plan *plan);
