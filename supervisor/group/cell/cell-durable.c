/* SPDX-License-Identifier: MIT */

/* A cell's durable jobs: when they are written, and refused while the store is not usable. */

#include "shared/base/fault.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/group/cell/cell-backlog.h"
#include "supervisor/group/cell/cell-later.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/refusal.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/message/message-context.h"
#include <errno.h>

int cell_admit_durable(struct cell *cell, const struct cell_request *request)
{
    const struct store *store = cell->context->durable->store;

    switch (store ? store_state(store) : STORE_FAILED) {
    case STORE_OPEN:
        return 0;
    case STORE_OPENING:
        return cell_await_store(cell, request);
    case STORE_FULL:
        return CELL_E_STORE_FULL;
    default:
        return CELL_E_STORE_FAILED;
    }
}

/* Returns why a job was not added, or not changed: CELL_E_*. A job that a worker has begun, or that
 * the next supervisor may find on disk, must not look refused to its sender. */
static int refusal_for(const struct job *job, int result, bool added)
{
    if (!added && (result == -EIO || job->attempt > 0))
        return CELL_E_UNSURE;
    switch (result) {
    case JOB_ROWS_E_EXISTS:
        return CELL_E_EXISTS;
    case -ENOSPC:
        return CELL_E_STORE_FULL;
    case -ECANCELED:
        return added ? CELL_E_LEFT : CELL_E_STOPPING;
    default:
        return CELL_E_STORE_FAILED;
    }
}

unsigned cell_rest_of(const struct cell *cell, const struct job *job, enum job_state end)
{
    const bool dead = end == JOB_DEAD && cell->context->messages->dead_letters.max > 0;
    const bool answered = end == JOB_SUCCEEDED || end == JOB_REJECTED;
    unsigned keeps = dead ? DURABLE_LETTER : 0;

    if (job_has_children(job))
        keeps |= DURABLE_FATE;
    if (job_own_ties(job) && job->rare->ties->batch)
        keeps |= DURABLE_COUNT;
    if (!cell_keeps_result(cell, job))
        return keeps;
    if (answered && job->result.size <= cell->config->results_memory_max)
        keeps |= DURABLE_BYTES;
    return keeps | DURABLE_RESULT;
}

bool cell_write_end(struct cell *cell, struct job *job, enum job_state end)
{
    struct dead_letters *letters = &cell->context->messages->dead_letters;
    const unsigned keeps = cell_rest_of(cell, job, end);

    if (!durable_job_end(job, end, keeps,
                         keeps & DURABLE_LETTER ? dead_letter_reserve_id(letters) : 0))
        return false;
    FAULT_POINT("job.end-given");
    job_count(&cell->counts, JOBS_ENDING, 1);
    return true;
}

/* Refuses a job that could not be added. If a worker has it in hand, it ends when the worker is
 * done. */
static void cell_refuse_unwritten(struct cell *cell, struct job *job, int refusal)
{
    job_count(&cell->counts, JOBS_REFUSED, 1);
    job->keep_result = false;
    if (job->state != JOB_RUNNING) {
        cell_take_out(cell, job);
        cell_drop_job(cell, job, refusal);
        return;
    }
    job->refusal = (uint8_t)refusal;
    (void)cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, JOB_NOBODY);
}

/* Ends a job of which neither the addition nor the end could be written. A sender that waits for
 * the end gets it: no other caller knows of the job. */
static void cell_end_unwritten(struct cell *cell, struct job *job, bool added, int refusal)
{
    const enum job_state end = durable_of(job)->end;

    job_count(&cell->counts, JOBS_ENDING, -1);
    if (!added && !job->keep_result) {
        cell_tell_end(cell, job, end);
        return;
    }
    if (!added)
        job_count(&cell->counts, JOBS_REFUSED, 1);
    if (end == JOB_SUCCEEDED || end == JOB_REJECTED)
        payload_deinit(&job->result); /* it is where the payload was, and does not count as one */
    cell_drop_job(cell, job, refusal);
}

/* Reports to waiters that a change of a live job could not be written. */
static void cell_refuse_change(struct job *job, int refusal)
{
    job->refusal = (uint8_t)refusal;
    durable_job_answer_all(job);
    job->refusal = 0;
}

static void cell_on_unwritten(struct cell *cell, struct job *job, unsigned changes, int result)
{
    const bool added = !(changes & DURABLE_ADD);
    const int refusal = refusal_for(job, result, added);

    if (durable_of(job)->leaves)
        cell_drop_job(cell, job, refusal);
    else if (durable_job_is_ending(job))
        cell_end_unwritten(cell, job, added, refusal);
    else if (!added)
        cell_refuse_unwritten(cell, job, refusal);
    else
        cell_refuse_change(job, refusal);
}

/* Sets the reason of a job whose result was not written: waiting clients get the result, which is
 * then dropped. */
static void cell_note_unkept(struct cell *cell, struct job *job)
{
    char reason[JOB_UNKEPT_MAX], id[PROTOCOL_ID_TEXT];

    (void)job_unkept_reason(job, durable_job_unkept(job), reason);
    job_set_reason(job, reason);
    limited_log_write(cell->context->log, cell->group->name, LOG_LEVEL_ERROR, "%s: job %s: %s",
                      cell->name, job_format_id(job, id), reason);
}

void cell_on_written(struct job *job, unsigned changes, int result)
{
    struct cell *cell = job->cell;

    if (result != 0) {
        cell_on_unwritten(cell, job, changes, result);
    } else if (changes & DURABLE_END) {
        FAULT_POINT("job.end-written");
        job->unkept = durable_job_unkept(job) < 0;
        if (job->unkept)
            cell_note_unkept(cell, job);
        job_count(&cell->counts, JOBS_ENDING, -1);
        cell_tell_end(cell, job, durable_of(job)->end);
    } else {
        FAULT_POINT("job.written");
        if (changes & DURABLE_ADD && job->rare)
            cell_end_replaced(job);
        durable_job_answer(job);
        FAULT_POINT("job.written-told");
        if (changes & DURABLE_HAND || (changes & DURABLE_ADD && job->name))
            cell_wake(cell); /* it may have waited for that */
        if (durable_of(job)->leaves && !durable_job_is_busy(job))
            cell_drop_job(cell, job, CELL_E_LEFT);
        else if (job->parked)
            cell_backlog_on_written(job, changes & DURABLE_ADD);
        else if (job->state == JOB_DELAYED && !durable_job_is_ending(job))
            cell_later_review(job);
    }
}

void cell_note_left(struct cell *cell)
{
    cell->left_at = cell->group->n_returns + 1;
}

void cell_leave_on_disk(struct cell *cell, struct job *job)
{
    if (!job->record || !group_cell_closed(cell))
        return;
    cell_note_left(cell);
    cell_take_out(cell, job);
    durable_of(job)->leaves = true;
    if (!durable_job_is_busy(job))
        cell_drop_job(cell, job, CELL_E_LEFT);
}
