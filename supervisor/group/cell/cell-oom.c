/* SPDX-License-Identifier: MIT */

/* OnOom=: a job whose worker ran out of memory is tried again in another group, once. */

#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/job-event.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job-waiter.h"

bool cell_leaves_after_oom(const struct cell *cell, const struct job *job)
{
    return cell->config->on_oom && !job->moved && job->failed_by == ATTEMPT_CAUSE_OOM &&
           !cell_is_restored(job);
}

bool cell_fails_after_oom(const struct job *job)
{
    return job->moved && job->failed_by == ATTEMPT_CAUSE_OOM;
}

bool cell_awaits_row(const struct job *job)
{
    return job->record && !durable_of(job)->stored;
}

/* What the submitter has not chosen is now as in the new group, but for the attempts left. */
static void take_options(struct job *job, const struct config_group *config)
{
    const struct job_options asked = job_asked(job);
    const uint32_t max_retries = job->max_retries;

    job_set_options(job, &asked, config);
    job->max_retries = max_retries;
}

static void count_out(struct cell *cell, const struct job *job)
{
    cell_progress_moved(cell);
    job_count(&cell->counts, JOBS_BYTES, -(int64_t)job->payload.size);
    job_count(&cell->counts, JOBS_LIVE, -1);
}

static void count_in(struct cell *cell, const struct job *job)
{
    job_count(&cell->counts, JOBS_BYTES, (int64_t)job->payload.size);
    cell_count_live(cell);
}

bool cell_move_after_oom(struct cell *cell, struct job *job)
{
    struct cell *to = cell->context->find_after_oom(cell->context->registry, job);

    if (!to || !cell_has_room(to, job->payload.size))
        return false;
    job_event(job, "job.moved", NULL, "goes on in %s: attempt %u ran out of memory", to->name,
              job->attempt);
    count_out(cell, job);
    job_leave_submitter(job);
    job->group = to->group;
    job->cell = to;
    job->moved = true;
    take_options(job, to->config);
    count_in(to, job);
    cell_requeue(to, job, false);
    if (job->record)
        durable_job_move(job, to->group->name);
    job_tell_waiters(job);
    cell_note_gone(cell);
    return true;
}
