/* SPDX-License-Identifier: MIT */
/* Handles the end of an attempt: a result, a retry after a pause, or a dead job. */

#include "shared/base/fault.h"
#include "shared/base/probe.h"
#include "supervisor/event/death.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/job/checkpoint.h"
#include "supervisor/job/job-stream.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/loop/alarm.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/process/backoff.h"
#include "supervisor/store/job-rows.h"
#include <inttypes.h>
#include <stdio.h>

/* How often a job that cannot leave for another group yet tries again. */
#define CELL_ROW_RETRY (10 * USEC_PER_MSEC)

/* ---- OnOom=: a job whose worker ran out of memory is tried again in another group, once ---- */

bool cell_leaves_after_oom(const struct cell *cell, const struct job *job)
{
    return cell->config->on_oom && !job->moved && job->failed_by == ATTEMPT_CAUSE_OOM &&
           !cell_is_restored(job);
}

/* Whether the job may not be tried again, because it ran out of memory in both groups. */
static bool cell_fails_after_oom(const struct job *job)
{
    return job->moved && job->failed_by == ATTEMPT_CAUSE_OOM;
}

/* Moves a job that ran out of memory, and is in no list, to the other group's queue. Returns false
 * if that group does not take it. */
static bool cell_move_after_oom(struct cell *cell, struct job *job)
{
    struct cell *to = cell->context->find_after_oom(cell->context->registry, job);

    if (!to)
        return false;
    job_event(job, "job.moved", NULL, "continues in %s: attempt %u ran out of memory", to->name,
              job->attempt);
    cell_transfer(job, to);
    job->moved = true;
    cell_requeue(to, job, false);
    if (job->record)
        durable_job_move(job, to->group->name);
    job_tell_waiters(cell->context->jobs, job);
    cell_note_gone(cell);
    return true;
}

/* ---- attempts ---- */

static bool has_attempts_left(const struct job *job)
{
    return job->n_failed <= job->max_retries && !cell_is_restored(job);
}

void cell_end_wait(struct job *job)
{
    struct cell *cell = job->cell;
    const bool leaves = cell_leaves_after_oom(cell, job);

    list_unlink(&job->link);
    job_count(&cell->counts, JOBS_BACKOFF, -1);
    if (leaves && cell_move_after_oom(cell, job))
        return;
    if (leaves && !has_attempts_left(job)) {
        cell_end_job(cell, job, JOB_DEAD,
                     "it ran out of memory, and the group of OnOom= does not take it");
        return;
    }
    cell_requeue(cell, job, false);
    job_tell_waiters(cell->context->jobs, job);
}

static void cell_on_alarm(struct alarm *alarm)
{
    struct job *job = list_entry(alarm, struct job_pause, alarm)->job;

    /* A row that is being written for the first time cannot leave before. */
    if (cell_leaves_after_oom(job->cell, job) && job->record && !durable_of(job)->stored)
        alarm_set_after(alarm, CELL_ROW_RETRY);
    else
        cell_end_wait(job);
}

int cell_set_alarm(struct cell *cell, struct job *job, usec_t delay, usec_t at)
{
    struct alarm *alarm;

    if (job_make_pause(job) < 0)
        return -ENOMEM;
    alarm = &job->pause->alarm;
    alarm_init(alarm, cell->context->alarms, cell_on_alarm);
    if (at > 0)
        alarm_set_at(alarm, at);
    else
        alarm_set_after(alarm, delay);
    return 0;
}

void cell_back_off(struct cell *cell, struct job *job, usec_t delay)
{
    cell_progress_moved(cell);
    job_set_state(job, JOB_BACKOFF);
    list_push_back(&cell->backoff, &job->link);
    job_count(&cell->counts, JOBS_BACKOFF, 1);
    if (cell->group->drain != GROUP_OPEN)
        cell_wake(cell); /* perhaps nothing else will wake it to find that it is drained */
    if (cell_set_alarm(cell, job, delay, 0) < 0)
        cell_end_wait(job); /* without memory to wait */
    else
        job_tell_waiters(cell->context->jobs, job);
}

int cell_delay(struct cell *cell, struct job *job, usec_t delay, usec_t at)
{
    int r = cell_set_alarm(cell, job, delay, at);

    if (r < 0)
        return r;
    job_set_state(job, JOB_DELAYED);
    job->put_off = true;
    list_push_back(&cell->backoff, &job->link);
    job_count(&cell->counts, JOBS_BACKOFF, 1);
    return 0;
}

void cell_resume_wait(struct cell *cell, struct job *job, enum job_state state,
                      const struct job_row *row)
{
    const usec_t left = usec_min(usec_sub(row->due, clock_steady()), row->delay);

    if (cell_set_alarm(cell, job, left, row->delay == 0 ? row->due : 0) < 0) {
        cell_enqueue(cell, job, false); /* without memory to wait */
        return;
    }
    /* Keeps the date across supervisors, unless the whole delay ends earlier. */
    if (row->delay > 0 && left < row->delay) {
        job->pause->alarm.date = row->due;
        job->pause->alarm.delay = row->delay;
    }
    job_set_state(job, state);
    job->put_off = state == JOB_DELAYED;
    list_push_back(&cell->backoff, &job->link);
    job_count(&cell->counts, JOBS_BACKOFF, 1);
}

static usec_t cell_retry_delay(struct cell *cell, const struct job *job, usec_t chosen)
{
    const struct backoff_policy policy = {
        .min = job->backoff_min,
        .max = job->backoff_max,
        .random = cell->config->backoff_random,
    };

    if (chosen > 0)
        return usec_min(chosen, JOB_DELAY_MAX);
    return backoff_delay(&policy, job->n_failed - 1, cell->context->random);
}

/* Logs a job whose attempt failed after its cell was closed: it is not retried. */
static void cell_note_cut_off(struct cell *cell, const struct job *job)
{
    job_id_log_add(&cell->group->cut_off, cell->group->name,
                   "cancelled: the attempt failed, and the group takes no more jobs", job);
}

/* Writes that a durable job waits again after an attempt. */
static void cell_write_attempt(struct cell *cell, struct job *job, bool lazy)
{
    if (!job->record)
        return;
    durable_job_update(job, lazy);
    cell_leave_on_disk(cell, job);
}

#define PAYLOAD_LOST "its payload is lost: the supervisor has crashed"

/* Returns why there is no other attempt, unless all were used up. */
static const char *cell_why_last(const struct job *job)
{
    if (cell_fails_after_oom(job))
        return "tried with more memory already: ";
    return cell_is_restored(job) ? PAYLOAD_LOST "; " : "";
}

/* Decides what follows a failed attempt that is counted. `pause`: that before another attempt, as
 * the worker chose it; 0 = it did not. */
static void decide_next(struct cell *cell, struct job *job, const char *worker, const char *cause,
                        const char *detail, usec_t pause)
{
    const bool leaves = cell_leaves_after_oom(cell, job);
    char reason[PROTOCOL_REASON_MAX];

    if (job_cancel_requested(job)) {
        cell_end_cancelled(cell, job);
    } else if (group_cell_closed(cell) && !job->record) {
        (void)snprintf(reason, sizeof(reason), "not retried: %s; %s", group_cell_closed(cell),
                       detail);
        cell_note_cut_off(cell, job);
        cell_end_job(cell, job, JOB_CANCELLED, reason);
    } else if (cell_fails_after_oom(job) || !(leaves || has_attempts_left(job))) {
        (void)snprintf(reason, sizeof(reason), "%s%s", cell_why_last(job), detail);
        cell_end_job(cell, job, JOB_DEAD, reason);
    } else {
        job_count(&cell->counts, JOBS_RETRIES, 1);
        job_event(job, "job.retried", worker, "will be tried again%s%s: attempt %u failed (%s)",
                  leaves ? " in " : "", leaves ? cell->config->on_oom : "", job->attempt, cause);
        cell_back_off(cell, job, cell_retry_delay(cell, job, pause));
        cell_write_attempt(cell, job, false);
    }
}

static bool is_unread(const struct job *job)
{
    return job->record && durable_job_is_unread(job) && !job_cancel_requested(job);
}

static void cell_attempt_failed(struct cell *cell, struct job *job, const char *worker,
                                const char *cause, const char *detail, usec_t pause)
{
    FAULT_POINT("job.attempt-failed");
    job_note_attempt(job, worker, cause, detail);
    if (job->progressed && cell->config->retries_reset)
        job->n_failed = 0;
    job->progressed = false;
    job->n_failed++;
    if (is_unread(job))
        cell_leave_for_row(cell, job, JOB_ROW_BACKOFF, pause); /* the row has its options */
    else
        decide_next(cell, job, worker, cause, detail, pause);
}

void cell_job_failed_unread(struct cell *cell, struct job *job, usec_t pause)
{
    const struct job_attempt *last =
        job->n_attempts > 0 ? &job->rare->attempts[job->n_attempts - 1] : NULL;

    job_set_state(job, JOB_RUNNING);
    decide_next(cell, job, last ? last->worker : "", last ? last->cause : "supervisor",
                last ? last->detail : "", pause);
}

void cell_job_orphaned(struct cell *cell, struct job *job)
{
    job_set_state(job, JOB_RUNNING);
    cell_attempt_failed(cell, job, "", "supervisor", "the supervisor ended during the attempt", 0);
}

void cell_job_started(struct pool *pool, struct job *job)
{
    struct cell *cell = cell_of_pool(pool);

    cell_progress_moved(cell);
    job->started = true;
    job->n_unbegun = 0;
    job->started_at = loop_realtime(cell->context->loop);
    job_event(job, "job.started", job->slot->name, "is begun by %s, attempt %u", job->slot->name,
              job->attempt);
    PROBE(job_started, PROBE_JOB(job), (const char *)job->slot->name,
          usec_sub(job->started_at, job->created_at));
    if (job->record)
        durable_job_update(job, true);
    if (job->rare && cell->config->unique_until == CONFIG_UNIQUE_UNTIL_START)
        cell_release_unique(job);
    FAULT_POINT("job.started");
    job_tell_waiters(cell->context->jobs, job);
}

int cell_set_checkpoint(struct cell *cell, struct job *job, const void *data, size_t size)
{
    struct checkpoint *checkpoint = checkpoint_new(data, size);
    int r;

    job_count(&cell->counts, JOBS_BYTES, -(int64_t)job_bytes(job));
    r = checkpoint ? job_set_checkpoint(job, checkpoint) : -ENOMEM;
    job_count(&cell->counts, JOBS_BYTES, (int64_t)job_bytes(job));
    submitter_recharge(job);
    return r;
}

/* Jobs that wait for another attempt keep their checkpoints: these may take no more memory than
 * payloads may, also not those of one submitter. */
static bool has_room(const struct cell *cell, const struct job *job, size_t size)
{
    const struct checkpoint *former = job_checkpoint(job);
    const size_t former_size = former ? former->size : 0;

    return size <= former_size || cell_job_may_grow(cell, job, size - former_size);
}

void cell_job_checkpoint(struct pool *pool, struct job *job, const void *data, size_t size)
{
    struct cell *cell = cell_of_pool(pool);
    const bool fits = has_room(cell, job, size);

    cell_progress_moved(cell);
    if (!fits || cell_set_checkpoint(cell, job, data, size) < 0) {
        limited_log_write(cell->context->log, cell->group->name, LOG_LEVEL_WARNING,
                          "a checkpoint of a job is lost: %s",
                          fits ? "out of memory" : "QueueMemoryMax= or CellsQueueMemoryMax=");
        return;
    }
    job->progressed = true;
    if (job->record)
        durable_job_checkpoint(job);
}

void cell_job_emitted(struct pool *pool, struct job *job, const void *data, size_t size)
{
    struct cell *cell = cell_of_pool(pool);

    cell_progress_moved(cell);
    if (job_stream_add(job, &cell->group->streams, loop_realtime(cell->context->loop), data, size) <
        0)
        limited_log_write(cell->context->log, cell->group->name, LOG_LEVEL_WARNING,
                          "an item that a job emitted is lost: out of memory");
}

static void cell_job_erred(struct cell *cell, struct job *job, const char *worker,
                           const struct payload *text, usec_t pause)
{
    const char *bytes = payload_data(text);
    char detail[PROTOCOL_REASON_MAX + 1];
    int size = text->size > sizeof(detail) - 1 ? (int)sizeof(detail) - 1 : (int)text->size;

    (void)snprintf(detail, sizeof(detail), "%.*s", bytes ? size : 0, bytes ? bytes : "");
    cell_attempt_failed(cell, job, worker,
                        job->crashed ? death_cause_to_string(job->crash) : "retry", detail, pause);
}

/* Ends a job whose result is too large, before the result is written or passed on: holes in it cost
 * the worker nothing, but every reader pays for the whole size. */
static void cell_end_too_large(struct cell *cell, struct job *job, const char *worker,
                               uint64_t size)
{
    char reason[160];

    if (job->record && durable_job_is_unread(job)) {
        cell_drop_job(cell, job, CELL_E_UNREAD); /* its row has the payload */
        return;
    }
    (void)snprintf(reason, sizeof(reason),
                   "its result of %" PRIu64 " bytes is above ResultMax=%" PRIu64 " of the group; "
                   "it is not tried again",
                   size, cell->config->result_max);
    job_note_attempt(job, worker, "result_too_large", reason);
    job->n_failed++;
    cell_end_job(cell, job, JOB_DEAD, reason);
}

/* Counts a job that a worker does not have any more. */
static void count_returned(struct cell *cell, struct job *job)
{
    job_samples_note(&cell->group->samples, &cell->group->counts,
                     loop_realtime(cell->context->loop));
    job_count(&cell->counts, JOBS_RUNNING, -1);
    limits_end_any(&cell->group->limits, job, job->started);
}

void cell_job_answered(struct pool *pool, struct job *job, const char *worker,
                       enum protocol_outcome outcome, int32_t code, usec_t pause,
                       struct payload *result)
{
    struct cell *cell = cell_of_pool(pool);

    FAULT_POINT("job.end-taken");
    count_returned(cell, job);
    job->code = code;
    if (job_cancel_requested(job) && outcome != PROTOCOL_RETRY) {
        cell_note_past(cell, job, worker);
        cell_end_cancelled(cell, job);
        return;
    }
    switch (outcome) {
    case PROTOCOL_SUCCESS:
    case PROTOCOL_REJECT:
        if (result->size > cell->config->result_max) {
            cell_end_too_large(cell, job, worker, result->size);
            break;
        }
        cell_note_past(cell, job, worker);
        cell_drop_payload(cell, job);
        payload_move(&job->result, result);
        cell_end_job(cell, job, outcome == PROTOCOL_SUCCESS ? JOB_SUCCEEDED : JOB_REJECTED, NULL);
        break;
    case PROTOCOL_CANCELLED:
        cell_attempt_failed(cell, job, worker, "retry", "given up by its handler", 0);
        break;
    case PROTOCOL_RETRY:
        cell_job_erred(cell, job, worker, result, pause);
        break;
    }
}

/* Puts a job that was in hand back to the head of the queue. */
static void cell_put_back(struct cell *cell, struct job *job)
{
    cell_progress_moved(cell);
    if (is_unread(job)) {
        cell_leave_for_row(cell, job, JOB_ROW_WAITING, 0); /* which has the payload */
        return;
    }
    if (cell_is_restored(job)) {
        cell_end_job(cell, job, JOB_DEAD, PAYLOAD_LOST);
        return;
    }
    cell_requeue(cell, job, true);
    job_tell_waiters(cell->context->jobs, job);
    cell_write_attempt(cell, job, true);
}

void cell_job_returned(struct pool *pool, struct job *job)
{
    struct cell *cell = cell_of_pool(pool);

    count_returned(cell, job);
    if (job_cancel_requested(job)) {
        cell_end_cancelled(cell, job);
        return;
    }
    if (group_cell_closed(cell) && !job->record) {
        cell_note_cut_off(cell, job);
        cell_end_job(cell, job, JOB_CANCELLED, group_cell_closed(cell));
        return;
    }
    job->attempt--; /* the worker never began this attempt */
    cell_put_back(cell, job);
}

void cell_job_lost(struct pool *pool, struct job *job, const struct death *death)
{
    struct cell *cell = cell_of_pool(pool);

    count_returned(cell, job);
    if (death->cause != DEATH_STOP || job_cancel_requested(job) ||
        (group_cell_closed(cell) && !job->record)) {
        cell_attempt_failed(cell, job, death->worker, death_cause_to_string(death->cause),
                            death->detail, 0);
        return;
    }
    /* The worker was stopped on purpose, so this does not count as a failed attempt. */
    cell_put_back(cell, job);
}
