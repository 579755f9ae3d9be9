/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/slot-private.h"

#include "shared/base/log.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/job/job.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/actor-request.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Fields of a JOB record beside key and payload; generous. */
#define JOB_RECORD_FIXED 256u
/* So many workers may die before they begin a job; what dies after that counts as its attempts. */
#define UNBEGUN_MAX 3

#define slot_of(pointer, member) list_entry(pointer, struct slot, member)

/* ---- answers ---- */

struct job *slot_job_in_hand(struct slot *slot, uint64_t handle, uint32_t attempt)
{
    struct job *job = job_by_handle(slot->pool->context->jobs, handle);

    if (job && job->slot == slot && job->state == JOB_RUNNING && job->attempt == attempt)
        return job;
    return NULL;
}

/* Jobs are done in the order in which they are handed over. */
static struct job *slot_job_at_work(const struct slot *slot)
{
    return list_entry(list_first(&slot->jobs), struct job, link);
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
    if (slot->process.ended && !slot->came_up) {
        slot->came_up = true; /* it was ready, and is no more */
        return 0;
    }
    if (slot->state != LIFECYCLE_STARTING)
        return slot->state == LIFECYCLE_KILLING ? 0 : -EBADMSG;
    if (slot->early)
        return -EBADMSG; /* for the second time */
    slot->early = !process_confirm(&slot->process);
    if (!slot->early)
        slot_is_ready(slot);
    return 0;
}

static int slot_on_started(struct slot *slot, const struct ring_record *record)
{
    struct protocol_started started;
    struct job *job;
    int r;

    r = protocol_get_started(record->body, record->size, &started);
    if (r < 0)
        return r;
    job = slot_job_in_hand(slot, started.handle, started.attempt);
    if (job && !job->started) {
        job->state_sequence = started.state_sequence;
        if (slot->job_deadline != USEC_INFINITY && job == slot_job_at_work(slot))
            slot_clock_started(slot, job);
        slot->pool->handler->job_started(slot->pool, job);
    }
    return 0;
}

/* Prefetch=: it is at work, and can take one more. Idle ones come first. */
static void slot_has_room(struct slot *slot)
{
    if (list_linked(&slot->available_link))
        return;
    list_push_back(&slot->pool->available, &slot->available_link);
    pool_wake(slot->pool);
}

/* Prefetch=: it has another one already, and room for one more. */
static void slot_next_in_hand(struct slot *slot)
{
    struct job *job = slot_job_at_work(slot);

    /* It may have begun this one already, and written: rather the end of what the one before it
     * wrote in the report than not the last words. */
    slot->output_mark = slot->process.output.end;
    slot_clock_job(slot, job);
    if (job->cancel_requested)
        slot_cancel(slot, job);
    if (slot_is_up(slot) && !slot->process.ended && slot_may_take_job(slot))
        slot_has_room(slot);
}

/* Ours is the fault: the attempt has failed, and says why. */
static void slot_lose_result(struct slot *slot, int error, struct payload *reason)
{
    char text[PAYLOAD_SMALL];

    actor_log(slot->actor, LOG_LEVEL_ERROR, "a result is lost: %s", strerror(-error));
    (void)snprintf(text, sizeof(text), "its result is lost: the supervisor: %s", strerror(-error));
    (void)payload_set(reason, text, strlen(text)); /* small: takes no memory */
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
    r = endpoint_take(&slot->endpoint, &result.payload, &payload);
    if (r == -ENOMEM || r == -EMFILE)
        slot_lose_result(slot, r, &payload);
    else if (r < 0)
        return r;
    job = slot_job_in_hand(slot, result.handle, result.attempt);
    /* A worker that was sent KillSignal= is about to die, and its death says why. An error that it
     * still reports says only that it was killed, and is no attempt of a job whose worker stops. */
    if (job && slot->signalled && result.outcome == PROTOCOL_RETRY)
        job = NULL;
    if (job) {
        list_unlink(&job->link);
        job->slot = NULL;
        slot->n_jobs--;
        slot->jobs_done++;
        slot->pool->handler->job_answered(slot->pool, job, slot->name,
                                          r < 0 ? PROTOCOL_RETRY : result.outcome, result.code,
                                          &payload);
        if (slot->n_jobs == 0)
            slot_event(slot, LIFECYCLE_EVENT_JOB_ENDED);
        else
            slot_next_in_hand(slot);
        slot_after_work(slot);
    }
    payload_deinit(&payload);
    return 0;
}

/*
 * It ends by itself: a stop that it has asked for. Who leaves right after its start has failed: it
 * would be started again and again without a pause.
 */
static int slot_on_leave(struct slot *slot, const struct ring_record *record)
{
    const struct config_group *config = slot->pool->config;
    const bool again = slot->wanted && config->restart != CONFIG_RESTART_NO;
    char reason[PROTOCOL_REASON_MAX], text[PROTOCOL_REASON_MAX + 32];
    struct protocol_leave leave;
    int r;

    r = protocol_get_leave(record->body, record->size, &leave);
    if (r < 0)
        return r;
    if (!slot->came_up || slot->kill_reason != DEATH_EXIT ||
        usec_sub(slot_now(slot), slot->started_at) < config->min)
        return 0;
    if (leave.reason_size > 0)
        memcpy(reason, leave.reason, leave.reason_size);
    (void)capture_escape(slot->leave_reason, sizeof(slot->leave_reason), reason, leave.reason_size);
    (void)snprintf(text, sizeof(text), "ends itself: %s", slot->leave_reason);
    slot_tell(slot, LOG_LEVEL_INFO, "worker.left", NULL, NULL, text);
    if (!slot_is_up(slot)) { /* its burial is under way */
        slot_terminate(slot, DEATH_STOP);
        slot->restart_asked = again;
    } else if (again) {
        slot_restart(slot);
    } else {
        slot_stop(slot, false);
    }
    return 0;
}

static int slot_on_record(struct endpoint *endpoint, const struct ring_record *record)
{
    struct slot *slot = slot_of(endpoint, endpoint);

    switch (record->kind) {
    case PROTOCOL_READY:
        return slot_on_ready_record(slot, record);
    case PROTOCOL_STARTED:
        return slot_on_started(slot, record);
    case PROTOCOL_RESULT:
        return slot_on_result(slot, record);
    case PROTOCOL_LEAVE:
        return slot_on_leave(slot, record);
    case PROTOCOL_CRASHED:
        return slot_on_crashed(slot, record);
    default:
        return actor_request_on_record(slot->actor, record);
    }
}

/* What a worker says about itself and its jobs. */
static bool slot_is_urgent(uint16_t kind)
{
    return kind == PROTOCOL_READY || kind == PROTOCOL_STARTED || kind == PROTOCOL_RESULT ||
           kind == PROTOCOL_LEAVE || kind == PROTOCOL_CRASHED;
}

/* Takes it also behind a message that waits for room: somebody's full mailbox ends no job. */
static int slot_look(struct endpoint *endpoint, const struct ring_record *record, bool first)
{
    struct protocol_result result;

    (void)first;
    if (!slot_is_urgent(record->kind))
        return 0;
    if (record->kind == PROTOCOL_RESULT &&
        protocol_get_result(record->body, record->size, &result) == 0 &&
        !endpoint_is_next(endpoint, &result.payload))
        return ENDPOINT_E_FULL;
    return slot_on_record(endpoint, record);
}

static void slot_on_space(struct endpoint *endpoint)
{
    struct slot *slot = slot_of(endpoint, endpoint);

    /* Jobs first: messages would take the room again and again. */
    if (slot->wants_room && slot_is_up(slot))
        slot_has_room(slot);
    pool_wake(slot->pool);
    delivery_on_space(slot->actor);
    endpoint_resume(endpoint);
}

static void slot_on_consumed(struct endpoint *endpoint, const struct ring_record *record,
                             uint32_t cursor)
{
    delivery_on_consumed(slot_of(endpoint, endpoint)->actor, record, cursor);
}

static void slot_on_broken(struct endpoint *endpoint, const char *what)
{
    struct slot *slot = slot_of(endpoint, endpoint);

    (void)snprintf(slot->violation, sizeof(slot->violation), "%s", what);
    limited_log_write(slot_context(slot)->log, slot->pool->config->name, LOG_LEVEL_ERROR,
                      "%s: protocol violation: %s; it is killed", slot->name, what);
    slot_terminate(slot, DEATH_VIOLATION);
    slot_event(slot, LIFECYCLE_EVENT_VIOLATION);
}

const struct endpoint_handler SLOT_ENDPOINT = {
    .record = slot_on_record,
    .look = slot_look,
    .is_urgent = slot_is_urgent,
    .space = slot_on_space,
    .consumed = slot_on_consumed,
    .broken = slot_on_broken,
};

/* ---- jobs ---- */

static int slot_send_job(struct slot *slot, const struct job *job)
{
    /* What this worker was started with; the configuration may have changed since. */
    const uint32_t inline_max = slot->endpoint.channel.mine.header->inline_max;
    const uint32_t inline_size = job->payload.size > inline_max ? 0 : (uint32_t)job->payload.size;
    const uint32_t room = JOB_RECORD_FIXED + job->key_size + inline_size;
    struct protocol_job record = {
        .handle = job->handle,
        .attempt = job->attempt,
        .max_attempts = job->max_retries == UINT32_MAX ? UINT32_MAX : job->max_retries + 1,
        .timeout = job->timeout,
        .id = job->id,
        .key = job->key,
        .key_size = job->key_size,
    };
    void *body;
    int r;

    r = endpoint_reserve(&slot->endpoint, room, &body);
    if (r != 0)
        return r;
    r = endpoint_give(&slot->endpoint, &job->payload, &record.payload);
    if (r != 0)
        return r;
    r = protocol_put_job(body, room, &record);
    if (r < 0)
        return r;
    endpoint_commit(&slot->endpoint, PROTOCOL_JOB, (uint32_t)r);
    return 0;
}

bool slot_job_waits(const struct slot *slot)
{
    return slot->wants_room && slot_is_up(slot) && slot->pool->handler->has_job(slot->pool);
}

int slot_assign(struct slot *slot, struct job *job)
{
    int r;

    /* Before the worker can see the job. */
    if (slot->n_jobs == 0)
        slot->output_mark = capture_position(&slot->process.output);
    r = slot_send_job(slot, job);
    if (slot->wants_room)
        actor_wake(slot->actor);
    slot->wants_room = r == ENDPOINT_E_FULL;
    slot->actor->inbox.full = slot->actor->inbox.full || slot->wants_room;
    /* What it has just answered, one record and padding always fit (InlineMax= is bounded by that).
     */
    if (r == ENDPOINT_E_FULL && slot->n_jobs == 0 && slot->actor->inbox.n_messages == 0)
        endpoint_break(&slot->endpoint, "answers, but never gives back what it has read");
    if (r < 0 && slot_is_up(slot))
        slot_is_available(slot); /* ours is the fault: descriptors, memory */
    if (r != 0)
        return r;
    job->slot = slot;
    job->started = false;
    job->started_at = 0;
    job->crash = NULL;
    list_push_back(&slot->jobs, &job->link);
    slot->n_jobs++;
    if (slot->n_jobs == 1)
        slot_clock_job(slot, job);
    slot_event(slot, LIFECYCLE_EVENT_JOB_ASSIGNED);
    if (slot_may_take_job(slot))
        list_push_back(&slot->pool->available, &slot->available_link);
    return 0;
}

void slot_cancel(struct slot *slot, struct job *job)
{
    usec_t grace = usec_add(slot_now(slot), slot->pool->config->timeout_stop);

    /* One that waits its turn in the worker's inbox sees the flag when it comes: there is but one.
     */
    if (job != slot_job_at_work(slot))
        return;
    endpoint_mark(&slot->endpoint, job->handle);
    if (grace < slot->job_deadline)
        slot->job_deadline = grace;
    slot_arm_clock(slot);
}

int slot_send_stop(struct slot *slot)
{
    void *body;
    int r;

    slot->actor->inbox.control |= MEMORY_CONTROL_STOP;
    endpoint_set_control(&slot->endpoint, slot->actor->inbox.control);
    r = endpoint_reserve(&slot->endpoint, 0, &body);
    if (r != 0)
        return r;
    endpoint_commit(&slot->endpoint, PROTOCOL_STOP, 0);
    return 0;
}

static void slot_let_go(struct slot *slot, struct job *job)
{
    list_unlink(&job->link);
    job->slot = NULL;
    slot->n_jobs--;
}

/*
 * Whether the death of its worker is an attempt of the job that was next, or at work. One that was
 * never begun had no part in it, unless its own time ran out, or unless worker after worker dies
 * over it before it can say that it has begun.
 */
static bool slot_death_is_attempt(struct job *job, const struct death *death)
{
    if (job->started || death->cause == DEATH_JOB_TIMEOUT)
        return true;
    if (job->n_unbegun >= UNBEGUN_MAX)
        return true;
    job->n_unbegun++;
    return false;
}

void slot_lose_jobs(struct slot *slot, const struct death *death)
{
    /* Those that it had not begun go back to where they were taken from, the last one first. */
    while (slot->n_jobs > 0) {
        struct job *job = list_entry(slot->jobs.prev, struct job, link);
        const bool attempt = slot->n_jobs == 1 && slot_death_is_attempt(job, death);

        slot_let_go(slot, job);
        if (attempt)
            slot->pool->handler->job_lost(slot->pool, job, death);
        else
            slot->pool->handler->job_returned(slot->pool, job);
    }
}
