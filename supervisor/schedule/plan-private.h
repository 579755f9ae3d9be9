/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between plan.c (when), plan-decide.c (what becomes of a slot), plan-job.c (its
 * job) and plan-row.c (its row). */

#include "supervisor/schedule/plan.h"

static inline usec_t usec_of(int64_t seconds)
{
    return (usec_t)seconds * USEC_PER_SEC;
}

/* Takes up the slots that are due, a bounded number, and waits for the next one. */
void plan_step(struct plan *plan);
/* Notes what became of a job that was created on request. */
void plan_note(struct plan *plan, int64_t slot, enum slot_outcome outcome, enum slot_cause cause);
/* Notes it in this row, and nowhere else. */
void plan_note_in(const struct plan *plan, struct schedule_row *row,
                  const struct decided_slot *slot);
/* Notes what became of a slot that is taken up now, or was before. */
void plan_decide(struct plan *plan, int64_t slot, enum slot_outcome outcome, enum slot_cause cause);

/* Gives the slot to its group, and decides it when the group has answered; unless the group is
 * durable, once the row that says so is written. */
void plan_fire(struct plan *plan, int64_t slot, enum slot_cause cause);
/* Whether the slot has a job that was accepted; then takes note of it. */
bool plan_has_job(struct plan *plan, int64_t slot);
/* Cancels the live jobs. */
void plan_cancel_jobs(struct plan *plan);
/* Whether the slot has a job that has not ended, in memory or on disk. */
bool plan_job_is_live(const struct plan *plan, int64_t slot);
/* Finds the live jobs of the slots that were fired last. Returns false if that takes longer. */
bool plan_attach(struct plan *plan);
/* Forgets all jobs. */
void plan_drop_jobs(struct plan *plan);

/* The row has changed: it is written, as often as the store gets round to it. */
void plan_write_row(struct plan *plan);
/* The row changes to `row` with the job that was created in this turn: if it is durable, both are
 * written in one transaction. */
void plan_write_row_with(struct plan *plan, struct job *job, const struct schedule_row *row);
/* Whether the row is being written. A store that has failed is not waited for. */
bool plan_awaits_row(const struct plan *plan);
/* The schedule ends; its row stays. */
void plan_forget_write(struct plan *plan);
