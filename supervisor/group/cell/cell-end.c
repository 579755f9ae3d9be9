/* SPDX-License-Identifier: MIT */

/* Ends jobs: counts them, notifies waiters, keeps results and dead letters. */

#include "shared/base/fault.h"
#include "shared/base/probe.h"
#include "supervisor/event/death.h"
#include "supervisor/event/event-id.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/refusal.h"
#include "supervisor/group/group.h"
#include "supervisor/history/history.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/loop/loop.h"
#include "supervisor/message/message-context.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- events of single jobs ---- */

/* NULL = it was not cancelled, and its present attempt has not failed. */
static const char *failure_of(const struct job *job)
{
    const struct job_attempt *last =
        job->n_attempts > 0 ? &job->rare->attempts[job->n_attempts - 1] : NULL;

    if (job->state == JOB_CANCELLED && job->cause != PROTOCOL_CAUSE_NONE)
        return protocol_cause_name(job->cause);
    return last && last->number == job->attempt ? last->cause : NULL;
}

void job_event_tell(const struct job *job, const char *type, const char *worker, const char *format,
                    ...)
{
    struct cell *cell = job->cell;
    const char *traceparent = job_traceparent(job);
    char id[PROTOCOL_ID_TEXT], text[256], message[CELL_NAME_MAX + PROTOCOL_ID_TEXT + 272];
    char span[TRACEPARENT_SIZE + 1];
    va_list arguments;

    if (!event_job_wanted(cell->context->events, cell->group->name, traceparent != NULL))
        return;
    if (traceparent)
        job_attempt_traceparent(job, span);
    job_format_id(job, id);
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    (void)snprintf(message, sizeof(message), "%s job %s %s", cell->name, id, text);
    event_publish_job(cell->context->events,
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
                          .cause = failure_of(job),
                          .traceparent = traceparent,
                          .span = traceparent && job->attempt > 0 ? span : NULL,
                          .message = message,
                      });
}

/* ---- dead jobs: in the log, in the group's status and as dead letters ---- */

static void cell_note_dead(struct cell *cell, const struct job *job)
{
    struct group_dead *dead = &cell->group->last_dead;

    job_get_id(job, &dead->id);
    dead->at = job->ended_at;
    (void)snprintf(dead->reason, sizeof(dead->reason), "%s", job->reason ? job->reason : "");
}

static bool has_died(const struct job_attempt *attempt)
{
    for (int i = 0; i < _DEATH_N_CAUSES; i++)
        if (strcmp(death_cause_to_string((enum death_cause)i), attempt->cause) == 0)
            return true;
    return false;
}

static bool had_job(const struct death *death, const void *id)
{
    return strcmp(death->job, id) == 0;
}

/* Finds the last reports of workers that had the job in hand, oldest first. Returns their number.
 */
static size_t find_deaths(const struct death_log *log, const struct job *job,
                          struct death *ret[DEAD_LETTER_DEATHS_MAX])
{
    char id[PROTOCOL_ID_TEXT];
    size_t n = 0;

    for (size_t i = 0; i < job->n_attempts && n < DEAD_LETTER_DEATHS_MAX; i++)
        n += has_died(&job->rare->attempts[i]);
    return death_log_find(log, had_job, job_format_id(job, id), ret, n);
}

/* Removes the job's payload, which is about to go elsewhere, and what counts with it, from the
 * counts. */
static inline void cell_drop_bytes(struct cell *cell, struct job *job)
{
    job_count(&cell->counts, JOBS_BYTES, -(int64_t)job_bytes(job));
    job_drop_checkpoint(job);
    if (job->rare)
        job->rare->ties_bytes = 0;
}

static void cell_write_dead_letter(struct cell *cell, struct job *job)
{
    const struct group_context *context = cell->context;
    struct payload payload = PAYLOAD_NULL;
    char id[PROTOCOL_ID_TEXT];
    struct dead_letter letter = {
        .reason = DEAD_JOB,
        .id = job->record ? durable_of(job)->letter : 0,
        .row = job->record ? durable_of(job)->row.number : 0,
        .at = job->ended_at,
        .recipient = cell->name,
        .topic = {.type = "", .key = job->key, .key_size = job->key_size},
        .sent_at = job->created_at,
        .job = job_format_id(job, id),
        .submitter_uid = job->submitter_uid,
        .code = job->code,
        .options = job_asked(job),
        .unique_high = job->rare ? job->rare->unique.high : 0,
        .unique_low = job->rare ? job->rare->unique.low : 0,
        .tags = job->rare ? job->rare->tags : NULL,
        .traceparent = job_traceparent(job),
        .text = job->reason,
        .attempts = job->n_failed,
        .cause = job->failed_by,
    };

    letter.n_deaths = find_deaths(context->deaths, job, letter.deaths);
    cell_drop_bytes(cell, job);
    payload_move(&payload, &job->payload);
    (void)dead_letter_add(&context->messages->dead_letters, &letter, &payload);
}

static void cell_tell_dead(struct cell *cell, const struct job *job)
{
    char id[PROTOCOL_ID_TEXT];
    const struct event event = {
        .level = LOG_LEVEL_ERROR,
        .type = "job.dead",
        .job = job_format_id(job, id),
        .message_id = EVENT_ID_JOB_DEAD,
        .quotes = true,
    };

    pool_tell(&cell->pool, event, "job %s is dead after %u attempt%s; the last: %s", id,
              job->n_failed, job->n_failed == 1 ? "" : "s", job->reason ? job->reason : "");
}

/* Logs and notes that the job is dead, and keeps its payload in a dead letter. */
static void cell_report_dead(struct cell *cell, struct job *job)
{
    cell_note_dead(cell, job);
    cell_tell_dead(cell, job);
    if (!cell_is_restored(job))
        cell_write_dead_letter(cell, job);
}

/* ---- ends ---- */

void cell_note_past_now(struct cell *cell, struct job *job, const char *worker)
{
    if (cell->group->past)
        history_note(cell->group->past, job, cell->group->name, worker,
                     cell->config->history_payload);
}

/* Notes a job that no worker has answered for the history, and reports it if it is dead. */
static void cell_end_unanswered(struct cell *cell, struct job *job)
{
    const unsigned n = job->n_attempts;

    cell_note_past(cell, job, n > 0 ? job->rare->attempts[n - 1].worker : NULL);
    if (job->state == JOB_DEAD)
        cell_report_dead(cell, job);
}

void cell_drop_payload(struct cell *cell, struct job *job)
{
    cell_drop_bytes(cell, job);
    if (job->record)
        durable_job_take_payload(job);
    payload_deinit(&job->payload);
}

/* Passes the cell's reference on to the group's kept results, or drops it. */
static void cell_let_go(struct cell *cell, struct job *job)
{
    job->cell = NULL;
    if (cell_keeps_result(cell, job))
        kept_results_add(&cell->group->results, job);
    else
        job_let_go(cell->context->jobs, job);
}

/* Measures jobs that a worker ended, unless their sender delayed them. */
static void cell_note_latency(struct cell *cell, const struct job *job)
{
    usec_t took = usec_sub(job->ended_at, job->created_at);
    usec_t worked = job->started_at > 0 ? usec_sub(job->ended_at, job->started_at) : 0;

    if (job->put_off || job->payload_lost || job_is_batch(job) ||
        (job->state != JOB_SUCCEEDED && job->state != JOB_REJECTED))
        return;
    for (struct job_history *history = &cell->history; history; history = history->parent) {
        latency_add(&history->latency, took);
        latency_add(&history->work, worked);
    }
    histogram_add(&cell->group->wait, usec_sub(took, worked));
    histogram_add(&cell->group->run, worked);
}

static void cell_note_outcome(struct cell *cell, const struct job *job)
{
    if (job->state == JOB_CANCELLED)
        return; /* says nothing about the cell */
    for (struct job_history *history = &cell->history; history; history = history->parent)
        outcomes_add(&history->outcomes, job->state == JOB_DEAD, job->ended_at);
}

static const enum job_count ENDS[_JOB_N_STATES] = {
    [JOB_SUCCEEDED] = JOBS_SUCCEEDED,
    [JOB_REJECTED] = JOBS_REJECTED,
    [JOB_CANCELLED] = JOBS_CANCELLED,
    [JOB_DEAD] = JOBS_DEAD,
};

/* Unless somebody has cancelled the job, the group has. */
static enum protocol_cause cause_of(const struct job *job, enum job_state end)
{
    if (end == JOB_CANCELLED)
        return job->cause != PROTOCOL_CAUSE_NONE ? job->cause : PROTOCOL_CAUSE_GROUP;
    if (end == JOB_DEAD)
        return cell_is_restored(job) ? PROTOCOL_CAUSE_PAYLOAD_LOST : PROTOCOL_CAUSE_ATTEMPTS;
    return PROTOCOL_CAUSE_NONE;
}

/* Notes the outcome. Clients see nothing of it yet: the job keeps its state. */
static void cell_decide_end(struct cell *cell, struct job *job, enum job_state end,
                            const char *reason)
{
    assert(!list_linked(&job->link));
    cell_progress_moved(cell);
    if (job->deadline)
        timer_disarm(cell_timers(cell), &job->deadline->timer);
    job->ended_at = loop_realtime(cell->context->loop);
    job_samples_note(&cell->group->samples, &cell->group->counts, job->ended_at);
    job->cause = (uint8_t)cause_of(job, end);
    if (reason)
        job_set_reason(job, reason);
}

void cell_note_gone(struct cell *cell)
{
    if (cell->group->removal != GROUP_STAYS || cell->group->drain != GROUP_OPEN ||
        !list_empty(&cell->waiting))
        cell_wake(cell);
    if (cell->counts.n[JOBS_LIVE] == 0) {
        cell_table_note_idle(cell);
        limits_leave(&cell->group->limits, cell);
        cell->idle_since = cell_now(cell);
        cell_keep(cell);
        cell_watch_idle(cell);
    }
}

static void cell_end_rare(struct cell *cell, struct job *job)
{
    cell_release_unique(job);
    cell_end_ties(cell, job);
    if (job->rare->past && job->refusal == 0 && cell->group->past)
        history_add(cell->group->past, job);
}

/* The job is not live any more: notifies its waiters, and lets go of it. */
static void cell_finish(struct cell *cell, struct job *job)
{
    job_count(&cell->counts, JOBS_LIVE, -1);
    if (job->rare)
        cell_end_rare(cell, job);
    job_tell_waiters(cell->context->jobs, job);
    if (job->record)
        durable_job_answer_all(job);
    FAULT_POINT("job.end-told");
    cell_let_go(cell, job);
    cell_note_gone(cell);
}

void cell_tell_end(struct cell *cell, struct job *job, enum job_state state)
{
    job_set_state(job, state);
    cell_note_latency(cell, job);
    if (job->refusal == 0) /* else it counts as refused */
        job_count(&cell->counts, ENDS[state], 1);
    cell_note_outcome(cell, job);
    if (state == JOB_DEAD || state == JOB_CANCELLED)
        cell_end_unanswered(cell, job);
    if (cell_is_restored(job))
        cell_tell_restored(cell, job);
    if (state == JOB_DEAD || state == JOB_CANCELLED)
        cell_drop_payload(cell, job);
    job_event(job, "job.ended", NULL, "has ended: %s, %" PRIu64 " ms after it was accepted",
              job_state_to_string(job->state),
              usec_sub(job->ended_at, job->created_at) / USEC_PER_MSEC);
    PROBE(job_ended, PROBE_JOB(job), job_state_to_string(job->state),
          usec_sub(job->ended_at, job->created_at));
    if (state == JOB_DEAD)
        PROBE(job_died, PROBE_JOB(job), attempt_cause_to_string(job->failed_by), job->attempt);
    cell_finish(cell, job);
}

void cell_end_job(struct cell *cell, struct job *job, enum job_state state, const char *reason)
{
    cell_decide_end(cell, job, state, reason);
    if (!job->record || !cell_write_end(cell, job, state))
        cell_tell_end(cell, job, state);
}

void cell_drop_job(struct cell *cell, struct job *job, int refusal)
{
    job->refusal = (uint8_t)refusal;
    job->keep_result = false;
    if (job->record)
        durable_job_leave(job);
    cell_decide_end(cell, job, JOB_CANCELLED, refusal_of(refusal)->text);
    job_set_state(job, JOB_CANCELLED);
    cell_drop_payload(cell, job);
    cell_finish(cell, job);
}

void cell_end_cancelled(struct cell *cell, struct job *job)
{
    const struct job *by = job->rare ? job->rare->replaced_by : NULL;
    char reason[sizeof("replaced by job ") + PROTOCOL_ID_TEXT] = "cancelled", id[PROTOCOL_ID_TEXT];

    if (by)
        (void)snprintf(reason, sizeof(reason), "replaced by job %s", job_format_id(by, id));
    else if (job->cause == PROTOCOL_CAUSE_DEADLINE)
        (void)snprintf(reason, sizeof(reason), "its deadline is over");
    else if (job->canceller != JOB_NOBODY)
        (void)snprintf(reason, sizeof(reason), "%s by uid %u",
                       job->cause == PROTOCOL_CAUSE_WITHDRAWN ? "withdrawn" : "cancelled",
                       (unsigned)job->canceller);
    cell_end_job(cell, job, JOB_CANCELLED, reason);
}
