/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-restore.h"

#include "shared/base/fault.h"
#include "supervisor/group/cell/cell-durable.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/identity-rows.h"
#include "supervisor/store/job-load.h"
#include "supervisor/store/job-to-row.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns 0 or -ENOMEM. */
static int restore_key(struct job *job, const struct job_row *row)
{
    if (row->key_size == 0)
        return 0;
    job->key = malloc(row->key_size);
    if (!job->key)
        return -ENOMEM;
    memcpy(job->key, row->key, row->key_size);
    job->key_size = row->key_size;
    return 0;
}

static void restore_progress(struct job *job, const struct job_row *row)
{
    job->max_retries = row->max_retries;
    job_cancel_from_row(job, row);
    job->attempt = row->attempt;
    job->n_failed = row->n_failed;
    job->failed_by = row->failed_by;
    job->moved = row->moved;
    job->started_at = row->started_at;
    job->created_at = row->created_at;
}

/* Returns 0 or -ENOMEM. */
static int restore_deadline(struct cell *cell, struct job *job, const struct job_row *row)
{
    usec_t left = usec_sub(row->deadline, clock_steady());

    if (row->deadline == 0)
        return 0;
    if (row->time_left > 0)
        left = usec_min(left, row->time_left);
    if (job_make_timers(job) < 0)
        return -ENOMEM;
    timer_init(&job->timers->deadline, cell_on_deadline);
    return timer_arm(cell_timers(cell), &job->timers->deadline, usec_add(cell_now(cell), left));
}

/* Makes a job with the id of the row. Returns 0 or another value. */
static int make_job(struct cell *cell, const struct job_row *row,
                    const struct identity_row *identity, struct job **ret)
{
    char name[PROTOCOL_ID_TEXT] = "";

    if (identity)
        return identity_restore_job(identity, cell->context->jobs, row->name, row->name_size, ret);
    if (row->name_size > 0 && row->name_size < sizeof(name))
        memcpy(name, row->name, row->name_size);
    return job_new(cell->context->jobs, name, ret);
}

int cell_restore_job(struct cell *cell, struct loaded_job *loaded,
                     const struct identity_row *identity, struct job **ret)
{
    const struct job_row *row = &loaded->row;
    struct job *job;
    int r;

    if (identity && job_options_check(&row->asked, 0, 0))
        return -EBADMSG;
    r = make_job(cell, row, identity, &job);
    if (r != 0)
        return r == JOB_E_EXISTS ? -EEXIST : -ENOMEM;
    job->group = cell->group;
    job->cell = cell;
    job->submitter_uid = row->submitter_uid;
    job->keep_result = true; /* its submitter, if it waited, asks for it by its id */
    job_set_options(job, &row->asked, cell->config);
    restore_progress(job, row);
    r = restore_key(job, row);
    if (r == 0 && !identity)
        r = durable_job_take(cell->context->durable, job, cell->group->name, row->number);
    if (r == 0)
        r = restore_deadline(cell, job, row);
    if (r < 0) {
        job_unref(cell->context->jobs, job);
        return r;
    }
    if (!identity) {
        durable_of(job)->stored = true;
        inherited_jobs_give(&cell->context->durable->inherited, job, row->number);
    }
    payload_move(&job->payload, &loaded->payload);
    *ret = job;
    return 0;
}

int cell_resume_job(struct cell *cell, struct loaded_job *loaded,
                    const struct identity_row *identity)
{
    uint32_t n_missed;
    struct job *job;
    int r = cell_restore_job(cell, loaded, identity, &job);

    if (r < 0)
        return r;
    FAULT_POINT("job.restored");
    cell_count_live(cell);
    job_count(&cell->counts, JOBS_BYTES, (int64_t)job->payload.size);
    n_missed = job->record ? durable_job_missed_ends(job, &loaded->row, false) : 0;
    if (n_missed > 0) {
        job->n_failed += n_missed - 1;
        cell_job_orphaned(cell, job);
        return 0;
    }
    switch (loaded->row.state) {
    case JOB_ROW_RUNNING:
        cell_job_orphaned(cell, job);
        break;
    case JOB_ROW_DELAYED:
        cell_resume_wait(cell, job, JOB_DELAYED, &loaded->row);
        break;
    case JOB_ROW_BACKOFF:
        cell_resume_wait(cell, job, JOB_BACKOFF, &loaded->row);
        break;
    default:
        if (job_cancel_requested(job))
            cell_end_cancelled(cell, job);
        else
            cell_enqueue(cell, job, false);
    }
    return 0;
}

/* The supervisor crashed before the row said that the job had moved to this group. */
static void restore_move(struct cell *cell, struct job *job, const struct job_row *row)
{
    const char *name = cell->group->name;

    job->moved = row->moved;
    if (strlen(name) == row->group_size && memcmp(name, row->group, row->group_size) == 0)
        return;
    job->moved = true;
    if (job->record && !durable_job_is_ending(job))
        durable_job_move(job, name);
}

int cell_complete_job(struct cell *cell, struct job *job, struct loaded_job *loaded)
{
    const struct job_row *row = &loaded->row;
    const bool ended = job->record && durable_job_is_ending(job);
    int r = job->key ? 0 : restore_key(job, row);

    if (r == 0 && job_options_check(&row->asked, 0, 0))
        r = -EBADMSG;
    if (r == 0 && !ended)
        r = restore_deadline(cell, job, row);
    if (r < 0)
        return r;
    job->submitter_uid = row->submitter_uid;
    job->created_at = row->created_at;
    if (job->started && row->started_at > 0 && row->attempt == job->attempt)
        job->started_at = row->started_at;
    job->n_failed = row->n_failed;
    job->failed_by = row->failed_by;
    restore_move(cell, job, row);
    if (job->record)
        job->n_failed += durable_job_missed_ends(job, row, true);
    job_set_options(job, &row->asked, cell->config);
    job->max_retries = row->max_retries;
    if (!ended) {
        payload_move(&job->payload, &loaded->payload);
        job_count(&cell->counts, JOBS_BYTES, (int64_t)job->payload.size);
    }
    if (!job->record) {
        job->restored = false; /* nothing of it is lost */
        job_cancel_from_row(job, row);
        return 0;
    }
    FAULT_POINT("job.row-found");
    durable_job_found(job, ended ? cell_rest_of(cell, job, durable_of(job)->end) : 0);
    if (!ended && row->cancel != PROTOCOL_CAUSE_NONE) /* it may have been cancelled again */
        (void)cell_cancel(job, row->cancel, row->canceller);
    return 0;
}
