/* SPDX-License-Identifier: MIT */
/* Unique keys of a cell's jobs: see job/job-unique.h. */

#include "supervisor/group/cell/cell-private.h"
#include "supervisor/job/job-unique.h"
#include "supervisor/store/job-rows.h"

/* Queues a job that a gate has held, if it still waits there. */
static void end_aside(struct job *job)
{
    if (!job->aside || unique_waits(job))
        return;
    cell_take_out(job->cell, job);
    cell_enqueue(job->cell, job, true);
}

/* The job that was to be replaced continues to wait, if it still does. */
static void keep_replaced(struct job *job)
{
    struct job_table *jobs = job->cell->context->jobs;
    struct job *old = unique_end_replacing(jobs, job);

    if (!old)
        return;
    end_aside(old);
    job_unref(jobs, old);
}

void cell_release_unique(struct job *job)
{
    struct job *next = unique_leave(job->cell->context->jobs, job);

    if (next)
        end_aside(next);
    keep_replaced(job);
}

void cell_end_replaced(struct job *job)
{
    struct job *old = job->rare->replaces;

    if (old && !job_ended(old) && old->state != JOB_RUNNING)
        (void)cell_cancel(old, PROTOCOL_CAUSE_REQUESTED, job->submitter_uid);
    keep_replaced(job);
}

bool cell_has_released_key(const struct cell *cell, const struct job_row *row)
{
    return cell->config->unique_until == CONFIG_UNIQUE_UNTIL_START &&
           (row->started_at > 0 || row->n_failed > 0);
}
