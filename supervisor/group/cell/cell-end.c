/* SPDX-License-Identifier: MIT */
/* The end of a job: what is counted, who is told, what is kept. */

#include "shared/base/log.h"
#include "supervisor/event/death.h"
#include "supervisor/event/event-id.h"
#include "supervisor/event/event.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/job-event.h"
#include "supervisor/group/group.h"
#include "supervisor/loop/alarm.h"
#include "supervisor/loop/loop.h"
#include "supervisor/process/backoff.h"
#include <assert.h>
#include <stdio.h>

/* The reference that the cell holds on a live job goes over to the group's kept results, or goes.
 */
static void cell_let_go(struct cell *cell, struct job *job)
{
    const struct config_group *config = cell->config;

    job->cell = NULL;
    if (job->keep_result && config->results_max > 0 && config->result_ttl > 0) {
        kept_results_add(&cell->group->results, job);
    } else {
        job->group = NULL;
        job_unref(cell->context->jobs, job);
    }
}

/* Whose end was a worker's word; a sender's own delay is not the cell's. */
static void cell_note_latency(struct cell *cell, const struct job *job)
{
    usec_t took = usec_sub(job->ended_at, job->created_at);
    usec_t worked = job->started_at > 0 ? usec_sub(job->ended_at, job->started_at) : 0;

    if (job->put_off || (job->state != JOB_SUCCEEDED && job->state != JOB_REJECTED))
        return;
    for (struct job_history *history = &cell->history; history; history = history->parent) {
        latency_add(&history->latency, took);
        latency_add(&history->work, worked);
    }
}

static void cell_note_dead(struct cell *cell, const struct job *job)
{
    struct group_dead *dead = &cell->group->last_dead;

    dead->id = job->id;
    dead->at = job->ended_at;
    (void)snprintf(dead->reason, sizeof(dead->reason), "%s", job->reason ? job->reason : "");
}

/* Cancelled jobs say nothing about the cell. */
static void cell_note_outcome(struct cell *cell, const struct job *job)
{
    const bool dead = job->state == JOB_DEAD;

    if (job->state == JOB_CANCELLED)
        return;
    for (struct job_history *history = &cell->history; history; history = history->parent)
        outcomes_add(&history->outcomes, dead, job->ended_at);
    if (dead)
        cell_note_dead(cell, job);
}

static const enum job_count ENDS[_JOB_N_STATES] = {
    [JOB_SUCCEEDED] = JOBS_SUCCEEDED,
    [JOB_REJECTED] = JOBS_REJECTED,
    [JOB_CANCELLED] = JOBS_CANCELLED,
    [JOB_DEAD] = JOBS_DEAD,
};

void cell_end_job(struct cell *cell, struct job *job, enum job_state state, const char *reason)
{
    assert(!list_linked(&job->link));
    progress_moved(cell);
    if (timer_armed(&job->deadline))
        timer_disarm(loop_timers(cell->context->loop), &job->deadline);
    job_set_state(job, state);
    job->ended_at = loop_realtime(cell->context->loop);
    cell_note_latency(cell, job);
    if (reason)
        job_set_reason(job, reason);
    job_count(&cell->counts, ENDS[state], 1);
    cell_note_outcome(cell, job);
    job_count(&cell->counts, JOBS_BYTES, -(int64_t)job->payload.size);
    if (state == JOB_DEAD)
        cell_write_envelope(cell, job);
    job_drop_payload(job);
    job_count(&cell->counts, JOBS_LIVE, -1);
    job_event_ended(job);
    job_tell_waiters(job);
    cell_let_go(cell, job);
    if (cell->group->removed || !list_empty(&cell->waiting))
        cell_wake(cell);
    if (cell->counts.n[JOBS_LIVE] == 0) {
        cell->idle_since = cell_now(cell);
        cell_watch_idle(cell);
    }
}

void cell_end_cancelled(struct cell *cell, struct job *job)
{
    char reason[48] = "cancelled";

    if (job->timed_out)
        (void)snprintf(reason, sizeof(reason), "its deadline is over");
    else if (job->canceller_known)
        (void)snprintf(reason, sizeof(reason), "cancelled by uid %u", (unsigned)job->canceller);
    cell_end_job(cell, job, JOB_CANCELLED, reason);
}
