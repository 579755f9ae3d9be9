/* SPDX-License-Identifier: MIT */

/* The jobs of a schedule: they are created, and watched until they end. */

#include "supervisor/schedule/plan-private.h"

#include "shared/base/fault.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job-waiter.h"
#include <string.h>

static struct job_table *jobs_of(const struct plan *plan)
{
    return plan->context->groups->jobs;
}

/* ---- the end of a job ---- */

static void note_end(struct plan *plan, const struct job *job)
{
    const unsigned limit = plan->config->pause_on_failure;

    plan->row->ended_at = plan_now(plan);
    if (job->state == JOB_SUCCEEDED)
        plan->row->failures = 0;
    else if (job->state != JOB_CANCELLED)
        plan->row->failures++;
    plan_write_row(plan);
    if (limit > 0 && plan->row->failures >= limit)
        plan_pause(plan, PLAN_PAUSED_FAILED);
}

static void on_changed(struct job_waiter *waiter, struct job *job)
{
    struct plan *plan = waiter->owner;

    if (!job_ended(job) && job->refusal == 0)
        return;
    if (job->refusal == 0)
        note_end(plan, job);
    else
        plan->attached = false; /* it has left memory, and may come back */
    job_waiter_free(jobs_of(plan), waiter);
    plan->n_jobs--;
    plan_review(plan);
}

static void watch(struct plan *plan, struct job *job)
{
    struct job_waiter *waiter;

    if (job_ended(job) || plan->n_jobs == PLAN_JOBS_MAX)
        return;
    waiter = job_waiter_new(jobs_of(plan), job);
    if (!waiter)
        return;
    plan->n_jobs++;
    waiter->changed = on_changed;
    waiter->owner = plan;
    list_push_back(&plan->jobs, &waiter->owner_link);
}

void plan_cancel_jobs(struct plan *plan)
{
    list_for_each_entry_safe (waiter, &plan->jobs, struct job_waiter, owner_link)
        (void)cell_cancel(waiter->job, PROTOCOL_CAUSE_REQUESTED, JOB_NOBODY);
}

void plan_drop_jobs(struct plan *plan)
{
    list_for_each_entry_safe (waiter, &plan->jobs, struct job_waiter, owner_link)
        job_waiter_free(jobs_of(plan), waiter);
    plan->n_jobs = 0;
    if (plan->submission)
        plan->submission = job_waiter_free(jobs_of(plan), plan->submission);
    job_lookup_end(&plan->lookup);
}

/* ---- jobs of earlier slots ---- */

static struct job *find_job(const struct plan *plan, int64_t slot, struct protocol_id *id)
{
    *id = (struct protocol_id){0};
    (void)slot_format_id(plan->config->name, slot, id->name);
    return job_by_id(jobs_of(plan), id);
}

static bool is_watched(const struct plan *plan, const struct job *job)
{
    list_for_each_entry (waiter, &plan->jobs, struct job_waiter, owner_link)
        if (waiter->job == job)
            return true;
    return false;
}

static bool is_on_disk(const struct plan *plan, const struct protocol_id *id)
{
    return names_on_disk_has(&plan->context->groups->durable->names, id->name);
}

bool plan_has_job(struct plan *plan, int64_t slot)
{
    struct protocol_id id;
    struct job *job = find_job(plan, slot, &id);

    if (job && !is_watched(plan, job))
        watch(plan, job);
    if (!job && is_on_disk(plan, &id)) {
        plan->attached = false;
        return true;
    }
    return job;
}

bool plan_job_is_live(const struct plan *plan, int64_t slot)
{
    struct protocol_id id;
    const struct job *job = find_job(plan, slot, &id);

    return job ? !job_ended(job) : is_on_disk(plan, &id);
}

static void on_found(struct job_lookup *lookup, struct job *job, int error)
{
    struct plan *plan = list_entry(lookup, struct plan, lookup);

    if (job && !is_watched(plan, job))
        watch(plan, job);
    plan_review(plan);
}

/* Looks for the job of a decided slot. Returns false if it has to be read from disk. */
static bool look_for(struct plan *plan, int64_t packed)
{
    struct decided_slot slot;
    struct protocol_id id;
    struct job *job;

    if (!slot_unpack(packed, &slot) || slot.outcome != SLOT_FIRED)
        return true;
    job = find_job(plan, slot.time, &id);
    if (job && !is_watched(plan, job))
        watch(plan, job);
    if (job || !is_on_disk(plan, &id))
        return true;
    plan->lookup.found = on_found;
    return job_lookup_begin(&plan->lookup, plan->context->groups, &id, 0) != 0;
}

bool plan_attach(struct plan *plan)
{
    if (plan->lookup.load)
        return false;
    if (plan->attached)
        return true;
    while (plan->n_looked < SCHEDULE_LAST_MAX)
        if (!look_for(plan, plan->row->last[plan->n_looked++]))
            return false;
    plan->n_looked = 0;
    plan->attached = true;
    return true;
}

/* ---- creation ---- */

static struct job_options options_of(const struct config_schedule *config)
{
    return (struct job_options){
        .max_retries = config->max_retries,
        .timeout = config->timeout,
        .backoff_min = config->backoff_min,
        .backoff_max = config->backoff_max,
        .priority = (uint8_t)config->priority,
    };
}

int plan_submit(struct plan *plan, int64_t slot, struct cell_request *request, struct job **ret)
{
    const struct config_schedule *config = plan->config;
    struct group *group = plan_group(plan);
    char id[PROTOCOL_ID_TEXT];
    size_t size;

    if (!group || group->removal != GROUP_STAYS || group->config->type != CONFIG_ACTOR)
        return CELL_E_MISSING;
    request->name = slot_format_id(config->name, slot, id);
    request->is_slot = true;
    request->key = config->key;
    request->key_size = config->key ? (uint32_t)strlen(config->key) : 0;
    request->keep_result = true;
    request->options = options_of(config);
    request->deadline = config->deadline;
    request->data = config_schedule_data(config, &size);
    request->size = size;
    return group_submit(group, request, ret);
}

/* ---- a job on request ---- */

static void note_run(struct plan *plan, int64_t slot, struct job *job)
{
    watch(plan, job);
    plan_note(plan, slot, SLOT_FIRED, SLOT_CAUSE_RUN);
}

static void on_run_written(struct job_waiter *waiter, struct job *job)
{
    struct plan *plan = waiter->owner;
    const int64_t slot = (int64_t)waiter->cookie;

    job_waiter_free(jobs_of(plan), waiter);
    plan->n_jobs--;
    if (job->refusal == 0)
        note_run(plan, slot, job);
    plan_review(plan);
}

/* Until it is written, the job counts as live. Returns false without memory. */
static bool await_run(struct plan *plan, int64_t slot, struct job *job)
{
    struct job_waiter *waiter = job_waiter_new(jobs_of(plan), job);

    if (!waiter)
        return false;
    plan->n_jobs++;
    waiter->changed = on_run_written;
    waiter->owner = plan;
    waiter->cookie = (uint64_t)slot;
    list_push_back(&plan->jobs, &waiter->owner_link);
    durable_job_await(job, waiter);
    return true;
}

int plan_run(struct plan *plan, int64_t slot, struct cell_request *request, struct job **ret,
             struct job_waiter **ret_waiter)
{
    const struct decided_slot run = {slot, SLOT_FIRED, SLOT_CAUSE_RUN};
    const int r = plan_submit(plan, slot, request, ret);
    struct schedule_row row = *plan->row;

    if (r != 0)
        return r;
    *ret_waiter = request->changed ? job_first_waiter(*ret) : NULL; /* the plan's comes later */
    plan_note_in(plan, &row, &run);
    plan_write_row_with(plan, *ret, &row);
    if (!(*ret)->record || !await_run(plan, slot, *ret))
        note_run(plan, slot, *ret);
    return 0;
}

/* ---- the job of a slot ---- */

/* The job of the slot that is being fired is on disk, or was refused. */
static void on_written(struct job_waiter *waiter, struct job *job)
{
    struct plan *plan = waiter->owner;
    const int64_t slot = plan->row->firing;
    const enum slot_cause cause = (enum slot_cause)waiter->cookie;
    const int refusal = job->refusal;

    plan->submission = job_waiter_free(jobs_of(plan), waiter);
    if (refusal == CELL_E_LEFT || refusal == CELL_E_STOPPING)
        return; /* the supervisor stops: the next one decides */
    if (refusal == 0)
        watch(plan, job);
    FAULT_POINT("schedule.written");
    if (refusal == 0 || refusal == CELL_E_EXISTS)
        plan_decide(plan, slot, SLOT_FIRED, cause);
    else
        plan_decide(plan, slot, SLOT_REFUSED, slot_cause_of(refusal));
    plan_review(plan);
}

/* Returns false if the slot has to wait for its row: a job that is not durable runs at once, and
 * may be lost. */
static bool note_firing(struct plan *plan, int64_t slot)
{
    const struct group *group = plan_group(plan);

    plan->lost = 0;
    plan->row->firing = slot;
    if (plan->row->waiting == slot)
        plan->row->waiting = 0;
    if (plan->row->reached < slot)
        plan->row->reached = slot;
    if (group && group->config->durable)
        return true;
    plan_write_row(plan);
    return !plan_awaits_row(plan);
}

void plan_fire(struct plan *plan, int64_t slot, enum slot_cause cause)
{
    struct cell_request request = {.changed = on_written, .owner = plan, .cookie = (uint64_t)cause};
    struct job *job;
    int r;

    if (plan->row->firing != slot && !note_firing(plan, slot))
        return;
    FAULT_POINT("schedule.firing");
    r = plan_has_job(plan, slot) ? CELL_E_EXISTS : plan_submit(plan, slot, &request, &job);
    FAULT_POINT("schedule.submitted");
    if (r == 0 && job->record) {
        plan_write_row_with(plan, job, plan->row);
        plan->submission = job_first_waiter(job);
        durable_job_await(job, plan->submission);
        return;
    }
    if (r == 0) {
        job_waiter_free(jobs_of(plan), job_first_waiter(job));
        watch(plan, job);
    }
    if (r == 0 || r == CELL_E_EXISTS)
        plan_decide(plan, slot, SLOT_FIRED, cause);
    else if (r == CELL_E_MISSING)
        plan_decide(plan, slot, SLOT_REFUSED, SLOT_CAUSE_NO_GROUP);
    else
        plan_decide(plan, slot, SLOT_REFUSED, slot_cause_of(r));
    FAULT_POINT("schedule.decided");
}
