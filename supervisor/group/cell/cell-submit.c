/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-submit.h"
#include "shared/base/probe.h"

#include "shared/base/fault.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job-unique.h"
#include "supervisor/job/job-waiter.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_permitted_name(const struct cell_request *request)
{
    const size_t size = strlen(request->name);

    return protocol_name_valid(request->name, size) &&
           (request->is_slot || !protocol_name_is_slot(request->name, size));
}

static const struct job_options_problem *check_start(const struct cell_request_rare *rare)
{
    static const struct job_options_problem both = {"at", "not together with delay_usec"};
    static const struct job_options_problem delay_long = {"delay_usec", "at most 366 days"};
    static const struct job_options_problem at_far = {"at", "at most 366 days from now"};

    if (rare->delay > 0 && rare->at > 0)
        return &both;
    if (rare->delay > JOB_DELAY_MAX)
        return &delay_long;
    if (rare->at > 0 && rare->at > usec_add(clock_realtime(), JOB_DELAY_MAX))
        return &at_far;
    return NULL;
}

static const struct job_options_problem *check_debounce(const struct cell_request_rare *rare)
{
    static const struct job_options_problem keyless = {"debounce_usec", "only with a unique key"};
    static const struct job_options_problem delayed = {"debounce_usec",
                                                       "not together with a delay or a date"};
    static const struct job_options_problem long_ = {"debounce_usec", "at most 366 days"};
    static const struct job_options_problem alone = {"debounce_max_usec", "only with a debounce"};

    if (rare->debounce == 0)
        return rare->debounce_max > 0 ? &alone : NULL;
    if (rare->unique_size == 0)
        return &keyless;
    if (rare->delay > 0 || rare->at > 0)
        return &delayed;
    return rare->debounce > JOB_DELAY_MAX ? &long_ : NULL;
}

static const struct job_options_problem *check_tags(const struct cell_request_rare *rare)
{
    static const struct job_options_problem invalid = {
        "tags", "1 to 8 words with a blank between two, each " PROTOCOL_NAME_ALLOWED};

    return rare->tags_size > 0 && !protocol_tags_valid(rare->tags, rare->tags_size) ? &invalid
                                                                                    : NULL;
}

static const struct job_options_problem *check_traceparent(const struct cell_request_rare *rare)
{
    static const struct job_options_problem invalid = {"traceparent", TRACEPARENT_ALLOWED};

    return rare->traceparent && !traceparent_valid(rare->traceparent, rare->traceparent_size)
               ? &invalid
               : NULL;
}

const struct job_options_problem *cell_request_check(const struct cell_request *request)
{
    const struct job_options_problem *problem =
        request->rare ? check_debounce(request->rare) : NULL;

    if (!problem && request->rare)
        problem = check_tags(request->rare);
    if (!problem && request->rare)
        problem = check_traceparent(request->rare);
    if (!problem)
        problem = job_options_check(&request->options);
    return problem || !request->rare ? problem : check_start(request->rare);
}

static int cell_admit(struct cell *cell, const struct cell_request *request)
{
    int r;

    if (group_cell_closed(cell))
        return CELL_E_STOPPING;
    if (cell->config->unread)
        return CELL_E_BAD_FILE;
    if (cell->group->removal != GROUP_STAYS)
        return CELL_E_STOPPING;
    if (cell->group->drain != GROUP_OPEN)
        return CELL_E_DRAINING;
    if (request->name[0] != '\0' && !is_permitted_name(request))
        return CELL_E_BAD_ID;
    if (!cell_may_ever_fit(cell, request->bounded ? 2 * request->size : request->size))
        return CELL_E_TOO_LARGE;
    r = cell->config->durable ? cell_admit_durable(cell, request) : 0;
    if (r != 0)
        return r;
    r = request->bounded && cell_exceeds_share(cell, request) ? CELL_E_BUSY
                                                              : cell_find_room(cell, request);
    if (r == CELL_E_BUSY)
        job_count(&cell->counts, JOBS_REFUSED, 1);
    return r;
}

static int cell_fill_rare(struct job *job, const struct cell_request_rare *rare)
{
    int r = unique_set(job, &rare->unique);

    if (r == 0 && job->rare)
        job->rare->debounced = rare->debounced;
    if (r == 0)
        r = job_set_tags(job, rare->tags, rare->tags_size);
    return r == 0 ? job_set_traceparent(job, rare->traceparent, rare->traceparent_size) : r;
}

/* Fills in everything but a blob, which is taken over when nothing can fail any more. */
static int cell_fill_job(struct cell *cell, struct job *job, const struct cell_request *request)
{
    int r;

    job->group = cell->group;
    job->cell = cell;
    job->keep_result = request->keep_result;
    job->submitter_uid = request->submitter_uid;
    job_set_options(job, &request->options, cell->config);
    r = job_set_key(job, request->key, request->key_size);
    if (r == 0 && request->rare)
        r = cell_fill_rare(job, request->rare);
    if (r < 0)
        return r;
    if (!request->blob)
        return payload_set(&job->payload, request->data, (size_t)request->size);
    return 0;
}

static int cell_add_submitter(struct cell *cell, struct job *job,
                              const struct cell_request *request)
{
    struct job_waiter *waiter = job_waiter_new(cell->context->jobs, job);

    if (!waiter)
        return -ENOMEM;
    waiter->changed = request->changed;
    waiter->owner = request->owner;
    waiter->cookie = request->cookie;
    return 0;
}

static bool is_for_later(const struct cell *cell, const struct cell_request_rare *rare)
{
    return rare &&
           (rare->delay > 0 || (rare->at > 0 && rare->at > loop_realtime(cell->context->loop)));
}

/* The time of waiting for room counts. Returns 0 or -ENOMEM. */
static int cell_set_deadline(struct cell *cell, struct job *job, const struct cell_request *request)
{
    const struct cell_waiter *waiter = request->waiter;
    usec_t from;

    if (request->deadline == 0 || request->deadline == USEC_INFINITY)
        return 0;
    from = waiter && waiter->deadline > 0 ? waiter->since : cell_now(cell);
    return cell_arm_deadline(cell, job, usec_add(from, request->deadline));
}

/* Returns 0, CELL_E_EXISTS, CELL_E_WAIT or -ENOMEM. */
static int cell_new_job(struct cell *cell, const struct cell_request *request, struct job **ret)
{
    int r;

    if (request->name[0] != '\0' && names_on_disk_find(&cell->context->durable->names,
                                                       request->name, strlen(request->name)) != 0)
        return CELL_E_EXISTS;
    r = job_new(cell->context->jobs, request->name, ret);
    if (r != JOB_E_EXISTS)
        return r;
    /* The sender may rely on the other one as if it were its own. */
    return (*ret)->record && !durable_job_is_known(*ret) ? cell_await_row(request, *ret)
                                                         : CELL_E_EXISTS;
}

/* Makes a job that is queued, but in no queue yet, or delayed. */
static int cell_make_job(struct cell *cell, const struct cell_request *request, struct job **ret)
{
    struct job *job;
    int r = cell_new_job(cell, request, &job);

    if (r != 0)
        return r;
    r = cell_fill_job(cell, job, request);
    if (r == 0 && request->changed)
        r = cell_add_submitter(cell, job, request);
    if (r == 0 && cell->config->durable)
        r = durable_job_new(cell->context->durable, job, cell->group->name,
                            request->rare ? request->rare->replaces : 0);
    if (r == 0 && request->rare && (request->rare->ties || request->rare->opens_batch))
        r = cell_tie(job, request->rare);
    if (r == 0)
        r = cell_set_deadline(cell, job, request);
    if (r == 0 && is_for_later(cell, request->rare))
        r = cell_delay(cell, job, request->rare->delay, request->rare->at);
    if (r < 0) {
        if (job->deadline)
            timer_disarm(cell_timers(cell), &job->deadline->timer);
        job_unref(cell->context->jobs, job);
        return r;
    }
    *ret = job;
    return 0;
}

/* Lets other jobs know of the new one. */
static void cell_announce(struct cell *cell, struct job *job, struct job *supersedes)
{
    if (job->rare->ties)
        ties_count(job, false);
    unique_join(cell->context->jobs, job);
    if (supersedes)
        unique_replace(cell->context->jobs, job, supersedes);
}

int cell_submit(struct cell *cell, const struct cell_request *request, struct job **ret)
{
    const usec_t now = loop_realtime(cell->context->loop);
    struct submitter *submitter = NULL;
    struct job *job;
    int r = cell_admit(cell, request);

    if (r != 0)
        return r;
    if (request->bounded)
        submitter = submitter_get(&cell->submitters, request->submitter_uid);
    if (request->bounded && !submitter)
        return -ENOMEM;
    cell_wake(cell); /* the next waiter may have room even if this fails */
    job_samples_note(&cell->group->samples, &cell->group->counts, now);
    r = cell_make_job(cell, request, &job);
    if (r != 0)
        return r;
    if (request->blob)
        payload_move(&job->payload, request->blob);
    if (submitter)
        submitter_charge(submitter, job);
    job->created_at = now;
    job_count(&cell->counts, JOBS_BYTES, (int64_t)job_bytes(job));
    job_count(&cell->counts, JOBS_ACCEPTED, 1);
    cell_count_live(cell);
    if (job->rare)
        cell_announce(cell, job, request->rare->supersedes);
    if (job->state == JOB_QUEUED)
        cell_enqueue(cell, job, false);
    FAULT_POINT("job.accepted");
    if (job->record)
        durable_job_add(job, job->state == JOB_QUEUED ? &cell->hold : NULL);
    else if (request->rare && request->rare->supersedes)
        cell_end_replaced(job);
    FAULT_POINT("job.given");
    job_event(job, "job.accepted", NULL, "is accepted");
    PROBE(job_accepted, PROBE_JOB(job), job->priority);
    *ret = job;
    return 0;
}
