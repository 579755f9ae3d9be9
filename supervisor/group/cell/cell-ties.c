/* SPDX-License-Identifier: MIT */
/* Jobs of a cell that wait for other jobs, and batches: see job/job-ties.h. */

#include "supervisor/group/cell/cell-ties.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/job/kept-results.h"
#include "supervisor/store/job-to-row.h"
#include "supervisor/store/removal.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- requests ---- */

static int copy_id(char ret[PROTOCOL_ID_TEXT], const char *id, size_t size)
{
    if (size >= PROTOCOL_ID_TEXT || !protocol_name_valid(id, size))
        return -EINVAL;
    (void)memcpy(ret, id, size);
    ret[size] = '\0';
    return 0;
}

static bool has_parent(const struct tie_request *ties, const char *id)
{
    for (size_t i = 0; i < ties->n; i++)
        if (strcmp(ties->parents[i].id, id) == 0)
            return true;
    return false;
}

int tie_request_parse(struct tie_request *ties, const char *text, size_t size,
                      enum tie_condition condition)
{
    const char *const end = text + size;

    for (const char *comma; text <= end; text = comma + 1) {
        struct tie_parent parent = {.condition = (uint8_t)condition};

        comma = memchr(text, ',', (size_t)(end - text));
        if (!comma)
            comma = end;
        if (ties->n == JOB_PARENTS_MAX || copy_id(parent.id, text, (size_t)(comma - text)) < 0)
            return -EINVAL;
        if (!has_parent(ties, parent.id))
            ties->parents[ties->n++] = parent;
    }
    return 0;
}

int tie_request_set_batch(struct tie_request *ties, const char *id, size_t size)
{
    return copy_id(ties->batch, id, size);
}

/* ---- new jobs ---- */

struct tie_key cell_tie_key(const struct job *job)
{
    return job->record
               ? (struct tie_key){.value = (uint64_t)durable_job_number(job), .durable = true}
               : (struct tie_key){.value = job->handle};
}

int cell_tie(struct job *job, const struct cell_request_rare *request)
{
    struct job_table *jobs = job->cell->context->jobs;
    const struct tie_request *ties = request->ties;
    int r = request->opens_batch ? ties_make_batch(jobs, job, cell_tie_key(job)) : 0;

    if (r < 0 || !ties)
        return r;
    return ties_add(jobs, job, cell_tie_key(job), ties->parents, ties->n, ties->joins,
                    ties->joins ? cell_tie_key(ties->joins) : (struct tie_key){0});
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

static void on_doomed(struct job *job)
{
    struct cell *cell = job->cell;
    const struct job_ties *parent = job_own_ties(job)->broken->parent;
    char reason[PROTOCOL_ID_TEXT + 64], id[PROTOCOL_ID_TEXT];

    if (!job_waits(job->state) || is_settled(job))
        return;
    (void)snprintf(reason, sizeof(reason), "job %s, which it waited for, has ended: %s",
                   ties_format_id(parent, id), job_state_to_string(parent->end));
    cell_take_out(cell, job);
    cell_end_job(cell, job, JOB_CANCELLED, reason);
}

static void on_complete(struct job *job)
{
    const struct batch_tally *tally = &job_own_ties(job)->tally;
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

static void forget_fate(const struct durable_jobs *durable, struct tie_key key)
{
    if (key.durable)
        removal_add(durable->store, (int64_t)key.value, ROWS_FATE);
}

static void on_unneeded(struct job_table *table, const struct job_ties *ties)
{
    forget_fate(table->ties.userdata, ties->key);
    if (ties->job)
        kept_results_review(ties->job);
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
    if (job->refusal == 0)
        ties_end(jobs, job);
    else if (job->refusal != CELL_E_LEFT && job->refusal != CELL_E_UNREAD)
        ties_retract(jobs, job);
    if (job->refusal == 0 && job->record && durable_of(job)->keeps & DURABLE_FATE &&
        !job_has_children(job))
        forget_fate(jobs->ties.userdata, cell_tie_key(job));
}

int cell_close_batch(struct job *job)
{
    struct job_table *jobs = job->cell->context->jobs;

    if (is_settled(job))
        return CELL_CANCEL_E_WAIT;
    if (!ties_close_batch(jobs, job) || !job->record)
        return job->record && durable_job_is_busy(job) ? CELL_CANCEL_E_WAIT : 0;
    durable_job_close(job);
    return durable_job_is_busy(job) ? CELL_CANCEL_E_WAIT : 0;
}

/* ---- succession ---- */

int cell_claim_ties(struct job *job, const struct job_row *row, const struct saved_job *saved)
{
    struct job_table *jobs = job->cell->context->jobs;
    const struct tie_key key = cell_tie_key(job);
    int r = 0;

    if (!job->record)
        r = ties_restore(jobs, key, row->ties, row->ties_size, false);
    if (r == 0 && saved && saved->is_batch)
        r = ties_restore_batch(jobs, key, &saved->tally);
    return r < 0 ? r : ties_claim(jobs, job, key, row->ties, row->ties_size);
}
