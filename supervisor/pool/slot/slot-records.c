/* SPDX-License-Identifier: MIT */
/* Handles records of an actor's worker: ready, started, checkpoint, emitted, result, leave. */

#include "supervisor/pool/slot/slot-private.h"

#include "shared/base/utf8.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/job/job.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/request/actor-request.h"
#include "supervisor/store/durable-job.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A taker's answer comes within 5 s, and a few requests may be before it. */
#define BLOB_WAIT (10 * USEC_PER_SEC)

struct job *slot_job_in_hand(struct slot *slot, uint64_t handle, uint32_t attempt)
{
    struct job *job = job_by_handle(slot->pool->context->jobs, handle);

    if (job && job->slot == slot && job->state == JOB_RUNNING && job->attempt == attempt)
        return job;
    return NULL;
}

void slot_is_ready(struct slot *slot)
{
    slot_event(slot, LIFECYCLE_EVENT_READY);
    slot_watch_owner(slot);
}

static int slot_on_ready_record(struct slot *slot, const struct ring_record *record)
{
    if (record->size != 0)
        return -EBADMSG;
    if (slot->worker.process.ended && slot->worker.readiness != WORKER_CAME_UP) {
        slot->worker.readiness = WORKER_CAME_UP; /* before it ended */
        return 0;
    }
    /* The last supervisor may have handled it, and not have released it. */
    if (slot->state != LIFECYCLE_STARTING)
        return slot->state == LIFECYCLE_KILLING || slot->actor->inbox.adopted ? 0 : -EBADMSG;
    if (slot->worker.readiness == WORKER_READY_EARLY)
        return -EBADMSG; /* sent twice */
    if (process_confirm(&slot->worker.process))
        slot_is_ready(slot);
    else
        slot->worker.readiness = WORKER_READY_EARLY;
    return 0;
}

static int slot_on_started(struct slot *slot, const struct ring_record *record)
{
    struct protocol_started started;
    struct job *job;
    int r = protocol_get_started(record->body, record->size, &started);

    if (r < 0)
        return r;
    job = slot_job_in_hand(slot, started.handle, started.attempt);
    if (job && !job->started) {
        job->state_sequence = started.state_sequence;
        if (slot->worker.job_deadline != USEC_INFINITY && job == slot_job_at_work(slot))
            slot_clock_started(slot, job);
        slot->pool->handler->job_started(slot->pool, job);
        slot_hand_begin(slot, job);
    }
    return 0;
}

static int slot_on_checkpoint(struct slot *slot, const struct ring_record *record)
{
    struct protocol_checkpoint checkpoint;
    struct job *job;
    int r = protocol_get_checkpoint(record->body, record->size, &checkpoint);

    if (r < 0)
        return r;
    job = slot_job_in_hand(slot, checkpoint.handle, checkpoint.attempt);
    if (!job)
        return 0;
    slot->pool->handler->job_checkpoint(slot->pool, job, checkpoint.data, checkpoint.data_size);
    slot_hand_update(slot, job);
    return 0;
}

static int slot_on_emitted(struct slot *slot, const struct ring_record *record)
{
    struct protocol_emitted emitted;
    struct job *job;
    int r = protocol_get_emitted(record->body, record->size, &emitted);

    if (r < 0)
        return r;
    if (emitted.payload.form != PAYLOAD_INLINE || emitted.payload.size > PROTOCOL_ITEM_MAX)
        return -EBADMSG;
    job = slot_job_in_hand(slot, emitted.handle, emitted.attempt);
    if (job)
        slot->pool->handler->job_emitted(slot->pool, job, emitted.payload.data,
                                         (size_t)emitted.payload.size);
    return 0;
}

/* Prefetch=: the worker, which is busy, can take one more job. Idle workers come first. */
static void slot_has_room(struct slot *slot)
{
    if (list_linked(&slot->available_link))
        return;
    list_push_back(&slot->pool->available, &slot->available_link);
    pool_wake(slot->pool);
}

/* Prefetch=: the worker begins the next job in hand, and has room for one more. */
static void slot_next_in_hand(struct slot *slot)
{
    struct job *job = slot_job_at_work(slot);

    /* The new job may have written output already: a report may include output of the previous job,
     * but misses none of the new one's. */
    slot->worker.output_mark = slot->worker.process.output.end;
    slot_clock_job(slot, job);
    if (job_cancel_requested(job))
        slot_cancel(slot, job);
    if (slot_is_up(slot) && !slot->worker.process.ended && slot_may_take_job(slot))
        slot_has_room(slot);
}

/* The supervisor lacks memory or descriptors: the attempt fails, with the reason. */
static void slot_lose_result(struct slot *slot, int error, struct payload *reason)
{
    char text[PAYLOAD_SMALL];

    actor_log(slot->actor, LOG_LEVEL_ERROR, "a result is lost: %s", strerror(-error));
    (void)snprintf(text, sizeof(text), "its result is lost: the supervisor: %s", strerror(-error));
    (void)payload_set(reason, text, strlen(text)); /* small: needs no memory */
}

/* The worker wrote the job's output before it answered: reads that, unless there is none. */
static void slot_end_output(struct slot *slot)
{
    struct capture *output = &slot->worker.process.output;
    const uint32_t published = slot->worker.endpoint.channel.in.tail;

    if (!capture_has_output(output) && slot->worker.silent_until == published)
        return;
    if (capture_has_output(output) || loop_has_news(slot_context(slot)->loop))
        capture_cut(output);
    else
        slot->worker.silent_until = published; /* as of when this was read, or later */
}

/* The result is there in time, even if its blob is received late. This puts the time-out off only
 * once, as the worker may withdraw the record before it is read again. */
static void slot_await_blob(struct slot *slot, const struct protocol_result *result)
{
    const struct job *job = slot_job_in_hand(slot, result->handle, result->attempt);

    if (!job || job != slot_job_at_work(slot) || slot->worker.put_off ||
        slot->worker.job_deadline == USEC_INFINITY)
        return;
    slot->worker.put_off = true;
    slot_limit_job(slot, usec_add(slot->worker.job_deadline, BLOB_WAIT));
}

/* Returns whether an answer says only that the supervisor ends the worker, whose death says why: an
 * error after KillSignal=, or that the worker gave up a job that was not cancelled, at its
 * time-out.
 */
static bool slot_is_end_of_worker(const struct slot *slot, const struct job *job,
                                  enum protocol_outcome outcome)
{
    if (outcome == PROTOCOL_RETRY)
        return slot->worker.signalled == SIGNALLED;
    return outcome == PROTOCOL_CANCELLED && slot->worker.kill_reason == DEATH_JOB_TIMEOUT &&
           !job_cancel_requested(job);
}

static int slot_on_result(struct slot *slot, const struct ring_record *record)
{
    struct protocol_result result;
    struct payload payload;
    struct job *job;
    int r;

    payload_init(&payload);
    r = protocol_get_result(record->body, record->size, &result);
    if (r < 0)
        return r;
    r = endpoint_take(&slot->worker.endpoint, &result.payload, &payload);
    if (r == ENDPOINT_E_BLOB)
        slot_await_blob(slot, &result);
    if (endpoint_is_loss(r))
        slot_lose_result(slot, r, &payload);
    else if (r != 0)
        return r;
    job = slot_job_in_hand(slot, result.handle, result.attempt);
    if (job && slot_is_end_of_worker(slot, job, result.outcome))
        job = NULL;
    if (job) {
        if (job->record)
            durable_job_keep_attempt(job, true);
        slot_end_output(slot);
        if (slot->worker.process.watch || slot->trace.crash.what.pid != 0)
            slot_trace_settle(slot);
        slot_let_go(slot, job);
        slot->worker.jobs_done++;
        slot->pool->handler->job_answered(slot->pool, job, slot->name,
                                          r < 0 ? PROTOCOL_RETRY : result.outcome, result.code,
                                          result.pause, &payload);
        if (slot->n_jobs == 0)
            slot_event(slot, LIFECYCLE_EVENT_JOB_ENDED);
        else
            slot_next_in_hand(slot);
        slot_after_work(slot);
    }
    payload_deinit(&payload);
    return 0;
}

/* Keeps the words of a worker that ends itself, for its report. */
static void slot_keep_last_words(struct slot *slot, const struct protocol_leave *leave)
{
    char reason[PROTOCOL_REASON_MAX], text[SLOT_TEXT_MAX] = "no reason given";

    if (leave->reason_size > 0) {
        memcpy(reason, leave->reason, leave->reason_size);
        (void)utf8_escape(text, sizeof(text), reason, leave->reason_size);
    }
    slot_set_status(slot, text);
    slot_tell(slot, (struct event){.level = LOG_LEVEL_INFO, .type = "worker.left", .quotes = true},
              "ends itself: %s", text);
}

/* The worker ends itself, which is a stop. One that leaves right after its start has failed:
 * otherwise it would restart without a pause. */
static int slot_on_leave(struct slot *slot, const struct ring_record *record)
{
    const struct config_group *config = slot->pool->config;
    const bool again = slot->plan == SLOT_ON && config->restart != CONFIG_RESTART_NO;
    struct protocol_leave leave;
    int r = protocol_get_leave(record->body, record->size, &leave);

    if (r < 0)
        return r;
    if (slot->worker.kill_reason != DEATH_EXIT || slot->status_text)
        return 0; /* it is to end, or has said why it does */
    slot_keep_last_words(slot, &leave);
    if (slot->worker.readiness != WORKER_CAME_UP ||
        usec_sub(slot_now(slot), slot->worker.started_at) < config->min)
        return 0;
    if (!slot_is_up(slot)) { /* about to be reaped */
        slot_set_kill_reason(slot, DEATH_STOP);
        if (again)
            slot->plan = SLOT_AGAIN;
    } else if (again) {
        slot_restart(slot);
    } else {
        slot_stop(slot, false);
    }
    return 0;
}

/* By kind: records about the worker and its jobs. They are urgent. */
static int (*const HANDLERS[])(struct slot *slot, const struct ring_record *record) = {
    [PROTOCOL_READY] = slot_on_ready_record,    [PROTOCOL_STARTED] = slot_on_started,
    [PROTOCOL_RESULT] = slot_on_result,         [PROTOCOL_CRASHED] = slot_on_crashed,
    [PROTOCOL_CHECKPOINT] = slot_on_checkpoint, [PROTOCOL_EMITTED] = slot_on_emitted,
    [PROTOCOL_LEAVE] = slot_on_leave,
};

static bool slot_is_urgent(uint16_t kind)
{
    return kind < sizeof(HANDLERS) / sizeof(HANDLERS[0]) && HANDLERS[kind];
}

static int slot_on_record(struct endpoint *endpoint, const struct ring_record *record)
{
    struct slot *slot = slot_of(endpoint, worker.endpoint);

    return slot_is_urgent(record->kind) ? HANDLERS[record->kind](slot, record)
                                        : actor_request_on_record(slot->actor, record);
}

/* Handles urgent records behind a message that waits for room: a full mailbox must not delay jobs.
 */
static int slot_look(struct endpoint *endpoint, const struct ring_record *record, bool first)
{
    struct protocol_result result;

    if (!slot_is_urgent(record->kind))
        return 0;
    if (record->kind == PROTOCOL_RESULT &&
        protocol_get_result(record->body, record->size, &result) == 0 &&
        !endpoint_is_next(endpoint, &result.payload)) {
        if (endpoint_awaits_blob(endpoint)) /* else it waits for room, perhaps for ever */
            slot_await_blob(slot_of(endpoint, worker.endpoint), &result);
        return ENDPOINT_E_FULL;
    }
    return slot_on_record(endpoint, record);
}

static void slot_on_space(struct endpoint *endpoint)
{
    struct slot *slot = slot_of(endpoint, worker.endpoint);

    /* Jobs first: otherwise messages could take the room every time. */
    if (slot->worker.wants_room && slot_is_up(slot) && !slot->worker.process.ended)
        slot_has_room(slot);
    pool_wake(slot->pool);
    delivery_on_space(slot->actor);
    endpoint_resume(endpoint);
}

static void slot_on_drainable(struct endpoint *endpoint)
{
    process_resume_reap(&slot_of(endpoint, worker.endpoint)->worker.process);
}

static void slot_on_consumed(struct endpoint *endpoint, const struct ring_record *record,
                             uint32_t cursor)
{
    delivery_on_consumed(slot_of(endpoint, worker.endpoint)->actor, record, cursor);
}

static void slot_on_broken(struct endpoint *endpoint, const char *what)
{
    struct slot *slot = slot_of(endpoint, worker.endpoint);

    slot->worker.violation = what;
    limited_log_write(slot_context(slot)->log, slot->pool->config->name, LOG_LEVEL_ERROR,
                      "%s: protocol violation: %s; it is killed", slot->name, what);
    slot_end_worker(slot, DEATH_VIOLATION, LIFECYCLE_EVENT_VIOLATION);
}

static void slot_on_crashing(struct endpoint *endpoint)
{
    slot_trace_crash(slot_of(endpoint, worker.endpoint));
}

const struct endpoint_handler SLOT_ENDPOINT = {
    .record = slot_on_record,
    .look = slot_look,
    .is_urgent = slot_is_urgent,
    .space = slot_on_space,
    .drainable = slot_on_drainable,
    .consumed = slot_on_consumed,
    .broken = slot_on_broken,
    .crashing = slot_on_crashing,
};
