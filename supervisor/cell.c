/* SPDX-License-Identifier: MIT */
#include "cell-private.h"

#include "../shared/cleanup.h"
#include "../shared/log.h"
#include "context.h"
#include "group.h"
#include "router.h"
#include "slot.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a job waits that could not be handed over for want of descriptors or memory. */
#define CELL_HANDOVER_RETRY (100 * USEC_PER_MSEC)
#define CELL_BACKOFF_MAX    ((usec_t)24 * 3600 * USEC_PER_SEC)

usec_t cell_now(const struct cell *cell)
{
    return loop_now(cell->context->loop);
}

void cell_wake(struct cell *cell)
{
    loop_defer(cell->context->loop, &cell->dispatch);
}

void cell_enqueue(struct cell *cell, struct job *job, bool first)
{
    if (first)
        queue_push_front(&cell->queue, job);
    else
        queue_push_back(&cell->queue, job);
    progress_watch(cell);
    cell_wake(cell);
}

/* ---- told by slots ---- */

void cell_slot_available(struct cell *cell, struct slot *slot)
{
    /* With Prefetch= it was there all the time, having room. */
    list_unlink(&slot->available_link);
    /* Last in, first out: the worker whose memory is still in the caches. */
    list_push_front(&cell->available, &slot->available_link);
    cell_wake(cell);
}

void cell_slot_has_room(struct cell *cell, struct slot *slot)
{
    /* Idle ones come first. */
    if (list_linked(&slot->available_link))
        return;
    list_push_back(&cell->available, &slot->available_link);
    cell_wake(cell);
}

void cell_slot_withdrawn(struct cell *cell, struct slot *slot)
{
    (void)cell;
    list_unlink(&slot->available_link);
}

void cell_slot_stopped(struct cell *cell, struct slot *slot)
{
    if (slot->retired || slot == cell->aside)
        cell_wake(cell);
}

/* ---- dispatch ---- */

static void cell_assign(struct cell *cell, struct slot *slot, struct job *job)
{
    int r;

    queue_remove(&cell->queue, job);
    job_set_state(job, JOB_RUNNING);
    job->attempt++;
    cell->n_running++;
    r = slot_assign(slot, job);
    if (r == 0) {
        progress_moved(cell);
        if (slot->n_jobs < cell->config->prefetch)
            list_push_back(&cell->available, &slot->available_link);
        job_tell_waiters(job);
        return;
    }
    cell->n_running--;
    job->attempt--; /* nobody has seen it */
    if (r == MAILBOX_E_FULL && slot_is_up(slot)) {
        /* Its inbox holds no more (Prefetch=, messages): it asks again once there is room. */
        job_set_state(job, JOB_QUEUED);
        cell_enqueue(cell, job, true);
        return;
    }
    log_warning("%s: handing over a job failed, trying again: %s", slot->name,
                r < 0 ? strerror(-r) : "its inbox is full");
    if (slot_is_up(slot)) {
        /* Ours is the fault: descriptors, memory. */
        cell_slot_available(cell, slot);
        cell_back_off(cell, job, CELL_HANDOVER_RETRY);
    } else {
        job_set_state(job, JOB_QUEUED);
        cell_enqueue(cell, job, true);
    }
}

static void cell_dispatch(struct loop_deferred *deferred)
{
    struct cell *cell = list_entry(deferred, struct cell, dispatch);
    struct list *node;
    struct job *job;

    replacement_step(cell);
    cell_trim(cell);
    while (!cell->paused && (job = queue_first(&cell->queue)) &&
           (node = list_first(&cell->available))) {
        struct slot *slot = list_entry(node, struct slot, available_link);

        list_unlink(node);
        /* A reload may have made Prefetch= less since it said that it has room. */
        if (slot->n_jobs < cell->config->prefetch)
            cell_assign(cell, slot, job);
    }
    cell_call_waiters(cell);
    if (cell->group->removed && cell->group->n_live == 0)
        group_drained(cell->group);
    if (cell->retiring && cell->n_slots == 0 && !cell->aside)
        group_retire_cell(cell->group, cell);
}

/* ---- submitting and cancelling ---- */

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
        cell->counters.refused++;
    return r;
}

static usec_t chosen(usec_t asked, usec_t configured)
{
    return asked == PROTOCOL_DEFAULT_USEC ? configured : asked;
}

/* A back-off without end would keep a job alive for ever. */
static usec_t bounded(usec_t backoff)
{
    return backoff < CELL_BACKOFF_MAX ? backoff : CELL_BACKOFF_MAX;
}

/* Everything but a blob, which is taken over when nothing can fail any more. */
static int cell_fill_job(struct cell *cell, struct job *job, const struct cell_request *request)
{
    const struct config_group *config = cell->config;

    job->group = cell->group;
    job->cell = cell;
    job->keep_result = request->keep_result;
    job->priority =
        request->priority == PROTOCOL_DEFAULT_PRIORITY ? QUEUE_PRIORITY_DEFAULT : request->priority;
    job->max_retries = request->max_retries == PROTOCOL_DEFAULT_RETRIES ? config->max_retries
                                                                        : request->max_retries;
    job->timeout = chosen(request->timeout, config->timeout);
    if (job->timeout == 0)
        job->timeout = USEC_INFINITY;
    job->backoff_min = bounded(chosen(request->backoff_min, config->backoff_min));
    job->backoff_max = bounded(chosen(request->backoff_max, config->backoff_max));
    if (request->key_size > 0) {
        job->key = malloc(request->key_size);
        if (!job->key)
            return -ENOMEM;
        memcpy(job->key, request->key, request->key_size);
        job->key_size = request->key_size;
    }
    if (request->blob_fd < 0)
        return parcel_set(&job->payload, request->data, (size_t)request->size);
    return 0;
}

static void cell_take_blob(struct cell *cell, struct job *job, const struct cell_request *request)
{
    struct parcel blob = PARCEL_NULL;

    parcel_set_blob(&blob, request->blob_fd, request->size);
    job_set_payload(&cell->context->jobs, job, &blob);
}

static bool is_for_later(const struct cell *cell, const struct cell_request *request)
{
    return request->delay > 0 ||
           (request->at > 0 && request->at > loop_realtime(cell->context->loop));
}

/* Queued or delayed, in no queue yet. */
static int cell_make_job(struct cell *cell, const struct cell_request *request, struct job **ret)
{
    struct job *job;
    int r;

    r = job_new(&cell->context->jobs, request->name, &job);
    if (r != 0)
        return r == JOB_E_EXISTS ? CELL_E_EXISTS : r;
    r = cell_fill_job(cell, job, request);
    if (r == 0 && is_for_later(cell, request))
        r = cell_delay(cell, job, request);
    if (r < 0) {
        job_unref(&cell->context->jobs, job);
        return r;
    }
    *ret = job;
    return 0;
}

int cell_submit(struct cell *cell, const struct cell_request *request,
                void (*changed)(struct job_waiter *, struct job *), void *owner, uint64_t cookie,
                struct job **ret)
{
    struct job *job;
    int r;

    r = cell_admit(cell, request);
    if (r != 0)
        return r;
    cell_wake(cell); /* whoever waits behind it may have room, whatever comes of this one */
    r = cell_make_job(cell, request, &job);
    if (r != 0)
        return r;
    if (request->blob_fd >= 0)
        cell_take_blob(cell, job, request);
    job->created_at = loop_realtime(cell->context->loop);
    cell->queue_bytes += job->payload.size;
    cell->group->queue_bytes += job->payload.size;
    cell->group->n_live++;
    if (job->state == JOB_QUEUED)
        cell_enqueue(cell, job, false);
    if (changed) {
        job->submitter.changed = changed;
        job->submitter.owner = owner;
        job->submitter.cookie = cookie;
        job_add_waiter(job, &job->submitter);
    }
    *ret = job;
    return 0;
}

/* Takes a job that is not running out of its list. */
static void cell_take_out(struct cell *cell, struct job *job)
{
    if (job->state != JOB_QUEUED) {
        alarm_stop(&job->alarm);
        list_unlink(&job->link);
        cell->n_backoff--;
    } else {
        queue_remove(&cell->queue, job);
    }
}

int cell_cancel(struct job *job)
{
    struct cell *cell = job->cell;

    if (job_ended(job))
        return CELL_CANCEL_E_ENDED;
    if (job->cancel_requested)
        return CELL_CANCEL_E_ALREADY;
    job->cancel_requested = true;
    if (job->state == JOB_RUNNING) {
        slot_cancel(job->slot, job);
        return 0;
    }
    cell_take_out(cell, job);
    cell_end_job(cell, job, JOB_CANCELLED, "cancelled");
    return 0;
}

/* The first job that is not running. */
static struct job *cell_first_waiting(const struct cell *cell)
{
    struct list *node = list_first(&cell->backoff);

    return node ? job_of(node) : queue_first(&cell->queue);
}

void cell_close(struct cell *cell)
{
    struct job *job;

    cell->closed = true;
    while ((job = cell_first_waiting(cell))) {
        cell_take_out(cell, job);
        cell_end_job(cell, job, JOB_CANCELLED, "the supervisor is stopping");
    }
    cell_turn_away(cell);
}

uint64_t cell_live_jobs(const struct cell *cell)
{
    return cell->queue.n_jobs + cell->n_backoff + cell->n_running;
}

/* ---- life ---- */

static void cell_set_name(struct cell *cell, const char *key)
{
    const char *group = cell->group->name;

    (void)snprintf(cell->name, sizeof(cell->name), "%s%s%s", group, *key ? "/" : "", key);
    cell->key = cell->name + strlen(group) + (*key != '\0');
}

static int cell_new_actor(struct cell *cell)
{
    int r;

    if (cell->config->type != CONFIG_ACTOR)
        return 0;
    r = actor_new(&cell->actor, cell->context, ACTOR_POOL, cell->name);
    if (r < 0)
        return r;
    cell->actor->cell = cell;
    cell->actor->log = cell->group->message_log;
    cell->actor->paused = cell->paused;
    return 0;
}

int cell_new(struct cell **ret, struct group *group, const char *key)
{
    struct cell *cell = calloc(1, sizeof(*cell));
    int r;

    if (!cell)
        return -ENOMEM;
    cell->context = group->context;
    cell->group = group;
    cell->config = group->config;
    cell->paused = group->paused;
    cell->closed = group->closed;
    cell->idle_since = cell_now(cell);
    cell_set_name(cell, key);
    list_init(&cell->link);
    list_init(&cell->available);
    queue_init(&cell->queue);
    list_init(&cell->backoff);
    list_init(&cell->waiting);
    list_init(&cell->called);
    timer_init(&cell->idle_timer, cell_on_idle_timer);
    loop_deferred_init(&cell->dispatch, cell_dispatch);
    replacement_init(cell);
    progress_init(cell);
    r = cell_new_actor(cell);
    if (r == 0)
        r = cell_reserve(cell, group->size);
    if (r < 0) {
        cell_free(cell);
        return r;
    }
    cell_set_size(cell, group->size);
    *ret = cell;
    return 0;
}

struct cell *cell_free(struct cell *cell)
{
    if (!cell)
        return NULL;
    assert(cell_live_jobs(cell) == 0);
    cell_turn_away(cell);
    timer_disarm(loop_timers(cell->context->loop), &cell->idle_timer);
    loop_undefer(&cell->dispatch);
    progress_deinit(cell);
    replacement_deinit(cell);
    for (size_t i = 0; i < cell->n_slots; i++)
        slot_free(cell->slots[i]);
    if (cell->actor)
        router_remove(cell->actor, "its group, or its cell, is gone");
    free(cell->slots);
    free(cell);
    return NULL;
}

void cell_pause(struct cell *cell)
{
    cell->paused = true;
    if (cell->actor)
        router_pause(cell->actor);
}

void cell_resume(struct cell *cell)
{
    cell->paused = false;
    if (cell->actor)
        router_resume(cell->actor);
    cell_wake(cell);
    cell_watch_idle(cell);
}
