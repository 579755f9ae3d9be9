/* SPDX-License-Identifier: MIT */
/* Jobs of a cell that wait for other jobs, and batches: see job/job-ties.h. */

#include "supervisor/group/cell/cell-ties.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/job/kept-results.h"
#include "supervisor/store/removal.h"
#include <inttypes.h>
#include <stdio.h>

/* ---- new jobs ---- */

int64_t cell_tie_key(const struct job *job)
{
    return job->record ? durable_job_number(job) : tie_key_of_handle(job->handle);
}

int cell_tie(struct job *job, const struct cell_request_rare *request)
{
    struct job_table *jobs = job->cell->context->jobs;
    int r = 0;

    if (request->opens_batch)
        r = ties_make_batch(jobs, job, cell_tie_key(job), &(struct batch_tally){.open = true});
    if (r == 0 && request->ties)
        r = ties_add(jobs, job, &request->ties->list);
    return r == 0 && job->record && request->ties ? ties_write(job_own_ties(job)) : r;
}

void cell_pend(struct cell *cell, struct job *job)
{
    job_set_state(job, JOB_PENDING);
    list_push_back(&cell->pending, &job->link);
    job_count(&cell->counts, JOBS_PENDING, 1);
    ties_review(cell->context->jobs, job);
}

static bool is_settled(const struct job *job)
{
    return job->record && durable_job_is_settled(job);
}

/* ---- struct job_ties_handler ---- */

static void on_released(struct job *job)
{
    struct cell *cell = job->cell;

    if (job->state != JOB_PENDING || is_settled(job))
        return;
    cell_take_out(cell, job);
    cell_requeue(cell, job, false);
    job_tell_waiters(cell->context->jobs, job);
}

static void on_doomed(struct job *job, const struct job_fate *parent)
{
    struct cell *cell = job->cell;
    char reason[PROTOCOL_ID_TEXT + 64];

    if (!job_waits(job->state) || is_settled(job))
        return;
    (void)snprintf(reason, sizeof(reason), "job %s, which it waited for, has ended: %s", parent->id,
                   job_state_to_string(parent->end));
    cell_take_out(cell, job);
    job->cause = PROTOCOL_CAUSE_DEPENDENCY;
    cell_end_job(cell, job, JOB_CANCELLED, reason);
}

static void on_complete(struct job *job)
{
    const struct batch_tally *tally = &job_own_fate(job)->tally;
    struct cell *cell = job->cell;
    char reason[96];

    if (job->state != JOB_PENDING || is_settled(job))
        return;
    (void)snprintf(reason, sizeof(reason), "%" PRIu64 " of %" PRIu64 " members did not succeed",
                   tally->failed, tally->failed + tally->succeeded);
    cell_take_out(cell, job);
    job->code = tally->failed > 0;
    if (tally->failed > 0)
        cell_end_job(cell, job, JOB_REJECTED, reason);
    else
        cell_end_job(cell, job, JOB_SUCCEEDED, NULL);
}

static void forget_fate(const struct job_table *table, int64_t key)
{
    const struct durable_jobs *durable = table->ties.userdata;

    if (tie_key_is_durable(key))
        removal_add(durable->store, key, ROWS_FATE);
}

static void on_unneeded(struct job_table *table, const struct job_fate *fate)
{
    forget_fate(table, fate->key);
    if (fate->job)
        kept_results_review(fate->job);
}

const struct job_ties_handler CELL_TIES = {
    .released = on_released,
    .doomed = on_doomed,
    .complete = on_complete,
    .unneeded = on_unneeded,
};

/* ---- ends ---- */

void cell_end_ties(struct cell *cell, struct job *job)
{
    struct job_table *jobs = cell->context->jobs;

    if (!job->rare->ties)
        return;
    if (job->refusal == CELL_E_LEFT || job->refusal == CELL_E_UNREAD)
        ties_leave(jobs, job); /* another job may take its place */
    else
        ties_end(jobs, job);
    if (job->refusal == 0 && job->record && durable_of(job)->keeps & DURABLE_FATE &&
        !job_has_children(job))
        forget_fate(jobs, cell_tie_key(job));
}

int cell_close_batch(struct job *job)
{
    if (is_settled(job))
        return CELL_CANCEL_E_WAIT;
    if (ties_close_batch(job->cell->context->jobs, job) && job->record)
        durable_job_close(job);
    return job->record && durable_job_is_busy(job) ? CELL_CANCEL_E_WAIT : 0;
}

/* ---- succession ---- */

int cell_claim_ties(struct job *job, const struct job_row *row)
{
    struct job_table *jobs = job->cell->context->jobs;
    const int64_t key = cell_tie_key(job);
    const struct batch_tally tally = {.open = row->batch == BATCH_OPEN,
                                      .succeeded = row->n_members_succeeded,
                                      .failed = row->n_members_failed};
    struct tie_list list;
    int r = ties_claim(jobs, job, key);

    if (r == 0 && row->batch != BATCH_NONE)
        r = ties_make_batch(jobs, job, key, &tally);
    if (r < 0 || row->ties_size == 0)
        return r;
    r = tie_list_read(&list, row->ties, row->ties_size);
    if (r == 0)
        r = ties_add(jobs, job, &list);
    if (r == 0)
        ties_count(job, job->record != NULL);
    return r;
}
