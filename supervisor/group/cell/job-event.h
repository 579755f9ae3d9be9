/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Events of single jobs: accepted, started, retried, ended. There may be hundreds of thousands of
 * them in a second, so they are neither logged nor kept, and cost one comparison while nobody
 * watches.
 */

#include "supervisor/event/event.h"
#include "supervisor/group/cell/cell.h"
#include "supervisor/job/job.h"

/* These send the event. Called by those below, while somebody watches. */
void job_event_tell_accepted(const struct job *job);
void job_event_tell_started(const struct job *job);
void job_event_tell_retried(const struct job *job, const char *worker, const char *cause);
void job_event_tell_ended(const struct job *job);

static inline bool job_event_wanted(const struct job *job)
{
    return event_jobs_watched(job->cell->context->events);
}

/* Each is called right after it happened; the job is still its cell's. */
static inline void job_event_accepted(const struct job *job)
{
    if (job_event_wanted(job))
        job_event_tell_accepted(job);
}

/* By the worker that has it. */
static inline void job_event_started(const struct job *job)
{
    if (job_event_wanted(job))
        job_event_tell_started(job);
}

/* An attempt at `worker` failed, and there will be another one. `cause`: as of an attempt. */
static inline void job_event_retried(const struct job *job, const char *worker, const char *cause)
{
    if (job_event_wanted(job))
        job_event_tell_retried(job, worker, cause);
}

static inline void job_event_ended(const struct job *job)
{
    if (job_event_wanted(job))
        job_event_tell_ended(job);
}
