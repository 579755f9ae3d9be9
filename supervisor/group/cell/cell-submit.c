/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-submit.h"

#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/job-event.h"
#include "supervisor/group/group.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int cell_admit(struct cell *cell, const struct cell_request *request)
{
    int r;

    if (cell->closed || cell->group->removed)
        return CELL_E_STOPPING;
    if (request->name[0] != '\0' && !protocol_name_valid(request->name, strlen(request->name)))
        return CELL_E_BAD_ID;
    if (!cell_may_ever_fit(cell, request->size))
        return CELL_E_TOO_LARGE;
    r = cell_find_room(cell, request);
    if (r == CELL_E_BUSY)
        job_count(&cell->counts, JOBS_REFUSED, 1);
    return r;
}

static usec_t chosen(usec_t asked, usec_t configured)
{
    return asked == PROTOCOL_DEFAULT_USEC ? configured : asked;
}

static void cell_fill_options(const struct cell *cell, struct job *job)
{
    const struct config_group *config = cell->config;
    const struct job_options *asked = &job->asked;

    job->priority =
        asked->priority == PROTOCOL_DEFAULT_PRIORITY ? QUEUE_PRIORITY_DEFAULT : asked->priority;
    job->max_retries =
        asked->max_retries == PROTOCOL_DEFAULT_RETRIES ? config->max_retries : asked->max_retries;
    job->timeout = chosen(asked->timeout, config->timeout);
    if (job->timeout == 0)
        job->timeout = USEC_INFINITY;
    job->backoff_min = chosen(asked->backoff_min, config->backoff_min);
    job->backoff_max = chosen(asked->backoff_max, config->backoff_max);
    /* A job may ask for longer pauses than its group's longest. */
    if (asked->backoff_max == PROTOCOL_DEFAULT_USEC && job->backoff_max < job->backoff_min)
        job->backoff_max = job->backoff_min;
}

/* Fills in everything but a blob, which is taken over when nothing can fail any more. */
static int cell_fill_job(struct cell *cell, struct job *job, const struct cell_request *request)
{
    job->group = cell->group;
    job->cell = cell;
    job->keep_result = request->keep_result;
    job->submitter_uid = request->submitter_uid;
    job->asked = request->options;
    cell_fill_options(cell, job);
    if (request->key_size > 0) {
        job->key = malloc(request->key_size);
        if (!job->key)
            return -ENOMEM;
        memcpy(job->key, request->key, request->key_size);
        job->key_size = request->key_size;
    }
    if (!request->blob)
        return payload_set(&job->payload, request->data, (size_t)request->size);
    return 0;
}

static bool is_for_later(const struct cell *cell, const struct cell_request *request)
{
    return request->delay > 0 ||
           (request->at > 0 && request->at > loop_realtime(cell->context->loop));
}

/* The time of waiting for room counts. Returns 0 or -ENOMEM. */
static int cell_arm_deadline(struct cell *cell, struct job *job, const struct cell_request *request)
{
    const struct cell_waiter *waiter = request->waiter;
    usec_t from;

    if (request->deadline == 0 || request->deadline == USEC_INFINITY)
        return 0;
    from = waiter && waiter->deadline > 0 ? waiter->since : cell_now(cell);
    timer_init(&job->deadline, cell_on_deadline);
    return timer_arm(cell_timers(cell), &job->deadline, usec_add(from, request->deadline));
}

/* Makes a job that is queued, but in no queue yet, or delayed. */
static int cell_make_job(struct cell *cell, const struct cell_request *request, struct job **ret)
{
    struct job *job;
    int r = job_new(cell->context->jobs, request->name, &job);

    if (r != 0)
        return r == JOB_E_EXISTS ? CELL_E_EXISTS : r;
    r = cell_fill_job(cell, job, request);
    if (r == 0)
        r = cell_arm_deadline(cell, job, request);
    if (r == 0 && is_for_later(cell, request))
        r = cell_delay(cell, job, request);
    if (r < 0) {
        timer_disarm(cell_timers(cell), &job->deadline);
        job_unref(cell->context->jobs, job);
        return r;
    }
    *ret = job;
    return 0;
}

int cell_submit(struct cell *cell, const struct cell_request *request, struct job **ret)
{
    struct job *job;
    int r = cell_admit(cell, request);

    if (r != 0)
        return r;
    cell_wake(cell); /* the next waiter may have room even if this fails */
    r = cell_make_job(cell, request, &job);
    if (r != 0)
        return r;
    if (request->blob)
        payload_move(&job->payload, request->blob);
    job->created_at = loop_realtime(cell->context->loop);
    job_count(&cell->counts, JOBS_BYTES, (int64_t)job->payload.size);
    job_count(&cell->counts, JOBS_LIVE, 1);
    if (job->state == JOB_QUEUED)
        cell_enqueue(cell, job, false);
    if (request->changed) {
        job->submitter.changed = request->changed;
        job->submitter.owner = request->owner;
        job->submitter.cookie = request->cookie;
        job_add_waiter(job, &job->submitter);
    }
    job_event(job, "job.accepted", NULL, "is accepted");
    *ret = job;
    return 0;
}
