/* SPDX-License-Identifier: MIT */

/* Takes over the jobs that workers of the last supervisor have in hand. */

#include "shared/base/fault.h"
#include "shared/ring/memory.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/job-event.h"
#include "supervisor/group/group.h"
#include "supervisor/store/durable-job.h"
#include <string.h>

/* Its payload and its options went with the last supervisor: another attempt is not possible. */
static void cell_describe_restored(struct cell *cell, struct job *job,
                                   const struct memory_job *entry)
{
    job->cell = cell;
    job->group = cell->group;
    job->attempt = entry->attempt;
    job->timeout = entry->timeout;
    job->submitter_uid = entry->submitter_uid;
    job->keep_result = true; /* its submitter asks for it by its id */
    job->created_at = loop_realtime(cell->context->loop);
    job->started_at = entry->started ? job->created_at : 0;
    job_set_state(job, JOB_RUNNING);
    cell_count_live(cell);
    job_count(&cell->counts, JOBS_RUNNING, 1);
}

struct job *cell_job_resumed(struct pool *pool, const struct memory_job *entry)
{
    struct cell *cell = cell_of_pool(pool);
    char id[PROTOCOL_ID_TEXT];
    struct job *job;
    int r = job_restore(cell->context->jobs, entry->handle, &entry->id, &job);

    if (r != 0) {
        log_error("%s: job %s, which a worker has in hand, cannot be taken over: %s", cell->name,
                  protocol_id_format(&entry->id, id), r < 0 ? strerror(-r) : "its id is taken");
        return NULL;
    }
    cell_describe_restored(cell, job, entry);
    if (entry->number != 0 &&
        durable_job_adopt(cell->context->durable, job, cell->group->name, entry->number) < 0)
        log_error("%s: out of memory: a durable job in hand is taken over without its row",
                  cell->name);
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
