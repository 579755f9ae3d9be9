/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/job-event.h"

#include "supervisor/event/event.h"
#include "supervisor/group/cell/cell.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job.h"
#include "supervisor/pool/slot/slot.h"
#include <stdio.h>

static void tell(const struct job *job, const char *type, const char *worker, const char *what)
{
    struct cell *cell = job->cell;
    char id[PROTOCOL_ID_TEXT], message[CELL_NAME_MAX + PROTOCOL_ID_TEXT + 256];

    protocol_id_format(&job->id, id);
    (void)snprintf(message, sizeof(message), "%s job %s %s", cell->name, id, what);
    event_emit_job(cell->context->events,
                   &(struct event){
                       .id = cell->context->events->last_id, /* a cursor stays where it was */
                       .at = loop_realtime(cell->context->loop),
                       .type = type,
                       .group = cell->group->name,
                       .cell = pool_event_name(&cell->pool),
                       .worker = worker,
                       .job = id,
                       .job_state = job_state_to_string(job->state),
                       .attempt = job->attempt,
                       .message = message,
                   });
}

void job_event_tell_accepted(const struct job *job)
{
    tell(job, "job.accepted", NULL, "is accepted");
}

void job_event_tell_started(const struct job *job)
{
    char what[DEATH_WORKER_MAX + 64];

    (void)snprintf(what, sizeof(what), "is begun by %s, attempt %u", job->slot->name, job->attempt);
    tell(job, "job.started", job->slot->name, what);
}

void job_event_tell_retried(const struct job *job, const char *worker, const char *cause)
{
    char what[128];

    (void)snprintf(what, sizeof(what), "will be tried again: attempt %u failed (%s)", job->attempt,
                   cause);
    tell(job, "job.retried", worker, what);
}

void job_event_tell_ended(const struct job *job)
{
    char what[96];

    (void)snprintf(what, sizeof(what), "has ended: %s, %llu ms after it was accepted",
                   job_state_to_string(job->state),
                   (unsigned long long)(usec_sub(job->ended_at, job->created_at) / USEC_PER_MSEC));
    tell(job, "job.ended", NULL, what);
}
