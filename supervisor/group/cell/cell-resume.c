/* SPDX-License-Identifier: MIT */

/* Takes over the jobs that workers of the last supervisor have in hand. */

#include "shared/base/fault.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/cell-progress.h"
#include "supervisor/group/cell/job-event.h"
#include "supervisor/group/group.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/succession/record.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The deadline may be over: then the job is cancelled in the next turn. */
static void restore_deadline(struct cell *cell, struct job *job, const struct job_page *page)
{
    if (page->deadline == 0 || job_cancel_requested(job) || job_make_timers(job) < 0)
        return;
    timer_init(&job->timers->deadline, cell_on_deadline);
    (void)timer_arm(cell_timers(cell), &job->timers->deadline,
                    usec_add(cell_now(cell), usec_sub(page->deadline, clock_steady())));
}

/* Its payload went with the last supervisor: its row has it, if there is one. */
static void cell_describe_restored(struct cell *cell, struct job *job, const struct job_page *page)
{
    job->cell = cell;
    job->group = cell->group;
    job->facts = page->facts;
    job->keep_result = true; /* its submitter asks for it by its id */
    if (job->started && job->started_at == 0)
        job->started_at = loop_realtime(cell->context->loop);
    (void)job_set_key(job, page->key, page->key_size);
    restore_deadline(cell, job, page);
    job_set_state(job, JOB_RUNNING);
    cell_count_live(cell);
    job_count(&cell->counts, JOBS_RUNNING, 1);
    cell_progress_watch(cell);
}

static int restore_job(struct cell *cell, const struct job_page *page, struct job **ret)
{
    if (!record_is_sound(&JOB_PAGE_RECORD, page))
        return -EBADMSG;
    return job_restore(cell->context->jobs, page->handle, &page->id, ret);
}

/* A request to cancel it may not be on disk yet. */
static void adopt_record(struct cell *cell, struct job *job, int64_t number)
{
    if (durable_job_adopt(cell->context->durable, job, cell->group->name, number) < 0)
        log_error("%s: out of memory: a durable job in hand is taken over without its row",
                  cell->name);
    else if (job_cancel_requested(job))
        durable_job_update(job, false);
}

struct job *cell_job_resumed(struct pool *pool, const struct job_page *page)
{
    struct cell *cell = cell_of_pool(pool);
    struct job *job;
    int r = restore_job(cell, page, &job);

    if (r != 0) {
        log_error("%s: a job that a worker has in hand cannot be taken over: %s", cell->name,
                  r < 0 ? strerror(-r) : "its id is taken");
        return NULL;
    }
    cell_describe_restored(cell, job, page);
    if (page->number != 0)
        adopt_record(cell, job, page->number);
    FAULT_POINT("job.adopted");
    return job;
}

void cell_tell_restored(struct cell *cell, const struct job *job)
{
    char id[PROTOCOL_ID_TEXT];

    pool_tell(&cell->pool,
              (struct event){.level = LOG_LEVEL_NOTICE,
                             .type = "job.recovered",
                             .job = job_format_id(job, id)},
              "job %s, in hand when the supervisor ended, has ended: %s", id,
              job_state_to_string(job->state));
}
