/* SPDX-License-Identifier: MIT */
/* Handles the end of an attempt: a result, a retry after a pause, or a dead job. */

#include "supervisor/event/death.h"
#include "supervisor/event/event-id.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/job-event.h"
#include "supervisor/group/group.h"
#include "supervisor/loop/alarm.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/process/backoff.h"
#include <stdio.h>

static void cell_tell_dead(struct cell *cell, struct job *job, const char *detail)
{
    char id[PROTOCOL_ID_TEXT];
    const struct event event = {
        .level = LOG_LEVEL_ERROR,
        .type = "job.dead",
        .job = protocol_id_format(&job->id, id),
        .message_id = EVENT_ID_JOB_DEAD,
        .quotes = true,
    };

    pool_tell(&cell->pool, event, "job %s is dead after %u attempt%s; the last: %s", id,
              job->n_failed, job->n_failed == 1 ? "" : "s", detail);
}

static void cell_on_alarm(struct alarm *alarm)
{
    struct job *job = list_entry(alarm, struct job, alarm);

    list_unlink(&job->link);
    job_count(&job->cell->counts, JOBS_BACKOFF, -1);
    cell_requeue(job->cell, job, false);
    job_tell_waiters(job);
}

void cell_back_off(struct cell *cell, struct job *job, usec_t delay)
{
    cell_progress_moved(cell);
    job_set_state(job, JOB_BACKOFF);
    list_push_back(&cell->backoff, &job->link);
    job_count(&cell->counts, JOBS_BACKOFF, 1);
    alarm_init(&job->alarm, cell->context->alarms, cell_on_alarm);
    if (alarm_set_after(&job->alarm, delay) < 0)
        cell_on_alarm(&job->alarm); /* without memory to wait */
    else
        job_tell_waiters(job);
}

int cell_delay(struct cell *cell, struct job *job, const struct cell_request *request)
{
    int r;

    alarm_init(&job->alarm, cell->context->alarms, cell_on_alarm);
    r = request->at > 0 ? alarm_set_at(&job->alarm, request->at)
                        : alarm_set_after(&job->alarm, request->delay);
    if (r < 0)
        return r;
    job_set_state(job, JOB_DELAYED);
    job->put_off = true;
    list_push_back(&cell->backoff, &job->link);
    job_count(&cell->counts, JOBS_BACKOFF, 1);
    return 0;
}

static usec_t cell_retry_delay(struct cell *cell, const struct job *job)
{
    const struct backoff_policy policy = {
        .min = job->backoff_min,
        .max = job->backoff_max,
        .random = cell->config->backoff_random,
    };

    return backoff_delay(&policy, job->n_failed - 1, cell->context->random);
}

/* Logs a job whose attempt failed after its cell was closed: it is not retried. */
static void cell_note_cut_off(struct cell *cell, const struct job *job)
{
    job_id_log_add(&cell->group->cut_off, cell->group->name,
                   "cancelled: the attempt failed, and the group takes no more jobs", job);
}

static void cell_attempt_failed(struct cell *cell, struct job *job, const char *worker,
                                const char *cause, const char *detail)
{
    char reason[PROTOCOL_REASON_MAX];

    job_note_attempt(job, worker, cause, detail);
    job->n_failed++;
    if (job->cancel_requested) {
        cell_end_cancelled(cell, job);
    } else if (cell->closed) {
        (void)snprintf(reason, sizeof(reason), "not retried: %s; %s", cell->closed, detail);
        cell_note_cut_off(cell, job);
        cell_end_job(cell, job, JOB_CANCELLED, reason);
    } else if (job->n_failed > job->max_retries) {
        (void)snprintf(reason, sizeof(reason), "%s", detail);
        cell_tell_dead(cell, job, detail);
        cell_end_job(cell, job, JOB_DEAD, reason);
    } else {
        job_count(&cell->counts, JOBS_RETRIES, 1);
        job_event(job, "job.retried", worker, "will be tried again: attempt %u failed (%s)",
                  job->attempt, cause);
        cell_back_off(cell, job, cell_retry_delay(cell, job));
    }
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
    job_tell_waiters(job);
}

static void cell_job_erred(struct cell *cell, struct job *job, const char *worker,
                           const struct payload *text)
{
    const char *bytes = payload_data(text);
    char detail[160];
    int size = text->size > sizeof(detail) - 1 ? (int)sizeof(detail) - 1 : (int)text->size;

    (void)snprintf(detail, sizeof(detail), "%.*s", bytes ? size : 0, bytes ? bytes : "");
    cell_attempt_failed(cell, job, worker, job->crash ? job->crash : "retry", detail);
}

void cell_job_answered(struct pool *pool, struct job *job, const char *worker,
                       enum protocol_outcome outcome, int32_t code, struct payload *result)
{
    struct cell *cell = cell_of_pool(pool);

    job_count(&cell->counts, JOBS_RUNNING, -1);
    job->code = code;
    if (job->cancel_requested && outcome != PROTOCOL_RETRY) {
        cell_end_cancelled(cell, job);
        return;
    }
    switch (outcome) {
    case PROTOCOL_SUCCESS:
    case PROTOCOL_REJECT:
        payload_move(&job->result, result);
        cell_end_job(cell, job, outcome == PROTOCOL_SUCCESS ? JOB_SUCCEEDED : JOB_REJECTED, NULL);
        break;
    case PROTOCOL_CANCELLED:
        cell_attempt_failed(cell, job, worker, "retry", "given up by its handler");
        break;
    case PROTOCOL_RETRY:
        cell_job_erred(cell, job, worker, result);
        break;
    }
}

void cell_job_returned(struct pool *pool, struct job *job)
{
    struct cell *cell = cell_of_pool(pool);

    job_count(&cell->counts, JOBS_RUNNING, -1);
    if (job->cancel_requested) {
        cell_end_cancelled(cell, job);
        return;
    }
    if (cell->closed) {
        cell_note_cut_off(cell, job);
        cell_end_job(cell, job, JOB_CANCELLED, cell->closed);
        return;
    }
    job->attempt--; /* the worker never began this attempt */
    cell_progress_moved(cell);
    cell_requeue(cell, job, true);
    job_tell_waiters(job);
}

void cell_job_lost(struct pool *pool, struct job *job, const struct death *death)
{
    struct cell *cell = cell_of_pool(pool);

    job_count(&cell->counts, JOBS_RUNNING, -1);
    if (death->cause != DEATH_STOP || job->cancel_requested || cell->closed) {
        cell_attempt_failed(cell, job, death->worker, death_cause_to_string(death->cause),
                            death->detail);
        return;
    }
    /* The worker was stopped on purpose, so this does not count as a failed attempt. */
    cell_progress_moved(cell);
    cell_requeue(cell, job, true);
    job_tell_waiters(job);
}
