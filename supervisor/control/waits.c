/* SPDX-License-Identifier: MIT */
/* Writes what a group, cell, worker or job waits for, as an array of the type Wait. */
#include "supervisor/control/report.h"

#include "supervisor/group/cell/cell-backlog.h"
#include "supervisor/group/cell/limit-table.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/group/undescribed.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/job/job-unique.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/store.h"
#include "supervisor/varlink/reply.h"
#include <stdio.h>

struct wait {
    const char *cause; /* of the type Wait; static */
    const char *target;
    uint64_t count;   /* 0 = none */
    uint64_t taken;   /* of `count`; 0 = none */
    usec_t until;     /* realtime; 0 = not known */
    const char *text; /* NULL = none */
};

static void add(struct reply *reply, const struct wait *wait)
{
    reply_object(reply, NULL);
    reply_string(reply, "cause", wait->cause);
    reply_string(reply, "target", wait->target);
    reply_uint_if(reply, "count", wait->count);
    reply_uint_if(reply, "taken", wait->taken);
    reply_uint_if(reply, "until_at", wait->until);
    reply_string_if(reply, "text", wait->text);
    reply_end_object(reply);
}

static void add_cause(struct reply *reply, const char *cause, const char *target)
{
    add(reply, &(struct wait){.cause = cause, .target = target});
}

/* ---- groups ---- */

/* Returns whether there is one. */
static bool add_after(struct reply *reply, const struct group *group)
{
    config_strv after = group->config->after.strings;

    for (size_t i = 0; group_is_pending(group) && after && after[i]; i++) {
        const struct group *before = registry_find(group->context->registry, after[i]);

        if (before && !group_decided(before))
            add_cause(reply, "after", before->name);
    }
    return group_is_pending(group);
}

static const char *store_cause(const struct store *store)
{
    if (store && store_state(store) == STORE_OPENING)
        return "store_opening";
    if (store && store_is_slow(store))
        return "store_slow";
    return store && store_state(store) == STORE_FULL ? "store_full" : "store_failed";
}

/* Workers whose jobs in hand are not known. */
static void add_unknown(struct reply *reply, const char *target, uint64_t count, const char *text)
{
    if (count > 0)
        add(reply,
            &(struct wait){.cause = "stopping", .target = target, .count = count, .text = text});
}

/* Returns whether its workers cannot be up because of that. */
static bool add_group(struct reply *reply, const struct group *group)
{
    const char *problem = group_store_problem(group);

    add_unknown(reply, group->name, group->limits.n_ending, NULL);
    if (group->removal != GROUP_STAYS && !group_is_undescribed(group))
        add_cause(reply, "removed", group->name);
    if (group->drain != GROUP_OPEN)
        add_cause(reply, "draining", group->name);
    if (group->pause == CELL_HELD_BACK)
        add_cause(reply, "safe_mode", group->name);
    else if (group->pause == CELL_PAUSED)
        add_cause(reply, "paused", group->name);
    if (group_is_blocked(group))
        add(reply, &(struct wait){
                       .cause = "fault", .target = group->name, .text = group_fault_text(group)});
    if (problem)
        add(reply, &(struct wait){.cause = store_cause(group->context->durable->store),
                                  .target = group->name,
                                  .text = problem});
    else if (group_is_pending(group) && group->context->limits->awaited)
        add(reply, &(struct wait){.cause = "store_opening",
                                  .target = group->name,
                                  .text = STORE_OPENING_TEXT});
    if (add_after(reply, group) || group_is_blocked(group))
        return true;
    if (!group->wanted)
        add(reply, &(struct wait){.cause = "stopped",
                                  .target = group->name,
                                  .text = group_stays_stopped(group) ? "keep" : NULL});
    return !group->wanted;
}

static const char *text_of(const struct group *group, const struct limit_hold *hold)
{
    if (!hold->limit)
        return "key";
    if (hold->limit == &group->limits.own)
        return NULL;
    return hold->units == 0 ? "unknown" : "limit";
}

static void add_unread(struct reply *reply, const struct group *group)
{
    const struct store *store = group->context->durable->store;
    const char *problem = store ? store_problem(store) : "";

    add(reply, &(struct wait){.cause = "limits_unread",
                              .target = group->name,
                              .text = *problem != '\0' ? problem : NULL});
}

static void add_hold(struct reply *reply, const struct group *group, const struct limit_hold *hold)
{
    static const char *const causes[] = {[LIMIT_RATE] = "rate", [LIMIT_RUNNING] = "running_max"};
    const bool is_running = hold->gate == LIMIT_RUNNING;
    const usec_t left = usec_sub(hold->until, clock_now());
    const usec_t until = usec_add(clock_realtime(), left);

    if (hold->gate == LIMIT_NONE)
        return;
    if (hold->gate == LIMIT_UNREAD) {
        add_unread(reply, group);
        return;
    }
    if (is_running && hold->limit && hold->limit->n_ending > group->limits.n_ending)
        add_unknown(reply, hold->limit->name, hold->limit->n_ending, "limit");
    add(reply, &(struct wait){.cause = causes[hold->gate],
                              .target = hold->limit ? hold->limit->name : group->name,
                              .count = is_running ? hold->units : 0,
                              .taken = is_running ? hold->taken : 0,
                              .until = is_running ? 0 : until,
                              .text = text_of(group, hold)});
}

/* The limits that hold jobs, even while workers are idle. */
static void add_held(struct reply *reply, const struct group *group)
{
    const struct limit_hold hold = limits_of_group(&group->limits);

    add_hold(reply, group, &hold);
    if (group->limits.n_aside > 0)
        add(reply, &(struct wait){.cause = "key_limits",
                                  .target = group->name,
                                  .count = group->limits.n_aside});
}

static void add_limits(struct reply *reply, const struct group *group)
{
    const uint64_t n_cells = group->cells.n_cells;

    add_held(reply, group);

    if (group_is_keyed(group) && n_cells >= group->config->cells_max)
        add(reply, &(struct wait){.cause = "cells_max", .target = group->name, .count = n_cells});
    if (group->counts.n[JOBS_WAITERS] > 0)
        add(reply, &(struct wait){.cause = "queue_full",
                                  .target = group->name,
                                  .count = group->counts.n[JOBS_WAITERS]});
}

/* The cells of a keyed group are too many to be looked at. */
void waits_of_group(struct reply *reply, const struct group *group)
{
    const size_t n = group->pools.census.n[CENSUS_TROUBLE];

    if (group->cell) {
        waits_of_cell(reply, group->cell);
        return;
    }
    reply_array(reply, "waits");
    if (!add_group(reply, group) && n > 0)
        add(reply, &(struct wait){.cause = "trouble", .target = group->name, .count = n});
    add_limits(reply, group);
    reply_end_array(reply);
}

/* ---- pools ---- */

struct waits_tally {
    uint64_t n[_LIFECYCLE_N_STATES];
    usec_t restart_at; /* of the first in backoff */
};

static struct waits_tally tally_of(const struct pool *pool)
{
    struct waits_tally tally = {.restart_at = 0};

    pool_each_slot (slot, pool) {
        if (slot->role != SLOT_MEMBER || slot->retired)
            continue;
        tally.n[slot->state]++;
        if (slot->state == LIFECYCLE_BACKOFF &&
            (tally.restart_at == 0 || slot->restart_at < tally.restart_at))
            tally.restart_at = slot->restart_at;
    }
    return tally;
}

static void add_workers(struct reply *reply, const char *cause, const struct pool *pool,
                        uint64_t count, usec_t until)
{
    if (count > 0)
        add(reply,
            &(struct wait){.cause = cause, .target = pool->name, .count = count, .until = until});
}

/* No worker is up: what the others are doing. */
static void add_absence(struct reply *reply, const struct pool *pool,
                        const struct waits_tally *tally)
{
    const uint64_t *n = tally->n;

    add_workers(reply, "starting", pool, n[LIFECYCLE_STARTING], 0);
    add_workers(reply, "backoff", pool, n[LIFECYCLE_BACKOFF],
                clock_steady_to_realtime(tally->restart_at));
    add_workers(reply, "stopping", pool, n[LIFECYCLE_STOPPING] + n[LIFECYCLE_KILLING], 0);
    add_workers(reply, "failed", pool, n[LIFECYCLE_FAILED], 0);
    add_workers(reply, "stopped", pool, n[LIFECYCLE_STOPPED], 0);
}

/* `at_work`: also that all workers are busy. */
static void add_pool(struct reply *reply, const struct cell *cell, bool at_work)
{
    const struct waits_tally tally = tally_of(&cell->pool);
    const uint64_t busy = tally.n[LIFECYCLE_BUSY];

    if (!cell->pool.wanted)
        add_cause(reply, "stopped", cell->name);
    else if (busy + tally.n[LIFECYCLE_IDLE] == 0)
        add_absence(reply, &cell->pool, &tally);
    else if (at_work && tally.n[LIFECYCLE_IDLE] == 0 && job_counts_queued(&cell->counts) > 0)
        add_workers(reply, "busy", &cell->pool, busy, 0);
}

static void add_cell(struct reply *reply, const struct cell *cell, bool at_work)
{
    if (cell->pause != CELL_RUNS && cell->group->pause == CELL_RUNS)
        add_cause(reply, "paused", cell->name);
    if (!add_group(reply, cell->group))
        add_pool(reply, cell, at_work);
}

void waits_of_cell(struct reply *reply, const struct cell *cell)
{
    reply_array(reply, "waits");
    add_cell(reply, cell, true);
    add_limits(reply, cell->group);
    reply_end_array(reply);
}

/* ---- workers ---- */

static const char *const SLOT_CAUSES[_LIFECYCLE_N_STATES] = {
    [LIFECYCLE_STOPPED] = "stopped",   [LIFECYCLE_STARTING] = "starting",
    [LIFECYCLE_STOPPING] = "stopping", [LIFECYCLE_KILLING] = "stopping",
    [LIFECYCLE_BACKOFF] = "backoff",   [LIFECYCLE_FAILED] = "failed",
};

void waits_of_slot(struct reply *reply, const struct slot *slot)
{
    const struct cell *cell = cell_of_pool(slot->pool);
    const char *cause = SLOT_CAUSES[slot->state];

    reply_array(reply, "waits");
    if (!cause && slot->n_jobs == 0 && (cell->pause != CELL_RUNS || !cell->pool.wanted))
        add_cell(reply, cell, true);
    else if (cause && !(slot->state == LIFECYCLE_STOPPED && add_group(reply, cell->group)))
        add(reply, &(struct wait){.cause = cause,
                                  .target = slot->name,
                                  .until = clock_steady_to_realtime(slot->restart_at)});
    reply_end_array(reply);
}

/* ---- jobs ---- */

static const char *ending_text(enum death_cause cause)
{
    const char *text = cause == DEATH_STOP ? "it is to stop" : death_cause_text(cause);

    return text ? text : "it dies";
}

static void add_ending(struct reply *reply, const struct slot *slot)
{
    add(reply, &(struct wait){.cause = "ending",
                              .target = slot->name,
                              .text = ending_text(slot->worker.kill_reason)});
}

/* Adds that a job runs, and that it may run forever if it has no time limit. */
static void add_begun(struct reply *reply, const struct job *job, const char *worker)
{
    char id[PROTOCOL_ID_TEXT];

    add_cause(reply, "running", worker);
    if (job->timeout == USEC_INFINITY && !job_cancel_requested(job))
        add_cause(reply, "unlimited", job_format_id(job, id));
}

static void add_running(struct reply *reply, const struct job *job)
{
    const char *worker = job->slot ? job->slot->name : job->cell->name;

    if (job_cancel_requested(job))
        add_cause(reply, "cancelling", worker);
    if (job->slot && job->slot->state == LIFECYCLE_KILLING)
        add_ending(reply, job->slot);
    else if (job->started)
        add_begun(reply, job, worker);
    else
        add_cause(reply, "handed_over", worker);
}

static void add_unique(struct reply *reply, const struct job *job)
{
    const struct job_table *jobs = job->cell->context->jobs;
    const struct job *other =
        job->rare->holds ? job->rare->replaced_by : unique_holder(jobs, &job->rare->unique);
    char id[PROTOCOL_ID_TEXT];

    if (other)
        add_cause(reply, "unique", job_format_id(other, id));
}

static void add_limit(struct reply *reply, const struct job *job)
{
    const struct limits *limits = &job->group->limits;
    const struct limit_hold hold =
        limits_exist(limits) ? limits_of_job(limits, job) : (struct limit_hold){.gate = LIMIT_NONE};

    add_hold(reply, job->group, &hold);
}

static void add_queued(struct reply *reply, const struct job *job)
{
    const uint64_t queued = job_counts_queued(&job->cell->counts);

    if (unique_waits(job))
        add_unique(reply, job);
    else
        add_limit(reply, job);
    add_cell(reply, job->cell, true);
    if (cell_backlog_awaits_restore(job))
        add_cause(reply, "store_reading", job->group->name);
    if (queued > 1)
        add(reply,
            &(struct wait){.cause = "queue", .target = job->cell->name, .count = queued - 1});
}

static const struct job_fate *first_undecided(const struct job_ties *ties)
{
    for (unsigned i = 0; i < ties->n; i++)
        if (ties->edges[i].parent->end == 0)
            return ties->edges[i].parent;
    return ties->edges[0].parent;
}

static void add_batch(struct reply *reply, const struct job *job, const struct batch_tally *tally)
{
    char id[PROTOCOL_ID_TEXT];

    job_format_id(job, id);
    if (tally->open)
        add_cause(reply, "batch_open", id);
    if (tally->live > 0)
        add(reply, &(struct wait){.cause = "members", .target = id, .count = tally->live});
}

static void add_pending(struct reply *reply, const struct job *job)
{
    const struct job_ties *ties = job_own_ties(job);
    char total[16];

    if (job_is_batch(job))
        add_batch(reply, job, &ties->fate->tally);
    if (ties->n_undecided == 0)
        return;
    (void)snprintf(total, sizeof(total), "%u", ties->n);
    add(reply, &(struct wait){.cause = "dependency",
                              .target = first_undecided(ties)->id,
                              .count = ties->n_undecided,
                              .text = total});
}

/* Adds the job's own time first: by then, the obstacles for workers may be gone. */
static void add_waiting(struct reply *reply, const struct job *job)
{
    add(reply, &(struct wait){.cause = job->state == JOB_DELAYED ? "delayed" : "retry",
                              .target = job->cell->name,
                              .count = job->n_failed,
                              .until = alarm_realtime(&job->pause->alarm)});
    add_cell(reply, job->cell, false);
}

void waits_of_job(struct reply *reply, const struct job *job)
{
    reply_array(reply, "waits");
    if (!job_ended(job) && job->cell) {
        if (job->record && durable_job_is_settled(job))
            add(reply, &(struct wait){.cause = "writing",
                                      .target = job->group->name,
                                      .text = group_store_problem(job->group)});
        else if (job->state == JOB_RUNNING)
            add_running(reply, job);
        else if (job->state == JOB_QUEUED)
            add_queued(reply, job);
        else if (job->state == JOB_PENDING)
            add_pending(reply, job);
        else
            add_waiting(reply, job);
    }
    reply_end_array(reply);
}
