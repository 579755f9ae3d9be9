/* SPDX-License-Identifier: MIT */
/*
 * The timer of the work in hand: time-outs of jobs, WatchdogSec=, and MaxMemory= of workers that
 * handle messages. To be cheap, it is not re-armed for each job: when it fires too early, it is
 * armed again.
 */

#include "supervisor/pool/slot/slot-private.h"

#include "supervisor/job/job.h"
#include "supervisor/message/actor.h"

/* Looks for a sign of life within WatchdogSec=. */
#define WATCHDOG_LOOKS 10
/* Bounds slot_catch_up() if the worker continues writing. */
#define CATCH_UP_BATCHES 64

/* Whether the worker should handle a message now: a paused one only those that it has begun. */
static bool slot_has_messages(const struct slot *slot)
{
    const struct actor *actor = slot->actor;

    if (!actor || !slot->worker.endpoint_open || !slot_is_up(slot))
        return false;
    return slot_has_message_in_hand(slot) || (actor->inbox.n_messages > 0 && !actor->paused);
}

static bool slot_is_watched(const struct slot *slot)
{
    if (slot_is_actor(slot))
        return slot->n_jobs > 0 || slot_has_messages(slot);
    return slot_is_up(slot);
}

/* Whether it has handled messages since its memory was measured, or has some. */
static bool slot_is_measured(const struct slot *slot)
{
    if (slot->pool->config->max_memory == CONFIG_UNSET || !slot->actor || !slot_is_up(slot))
        return false;
    return slot->actor->counters.consumed != slot->messages_measured || slot_has_messages(slot);
}

/* Whether the worker has published, handled or sent anything since the last call. */
static bool slot_gave_sign_of_life(struct slot *slot)
{
    const struct channel *channel = &slot->worker.endpoint.channel;
    const struct memory_words *words;
    uint64_t mark;

    if (!slot->worker.endpoint_open)
        return false;
    words = channel->their_words;
    /* Pairs with unordered stores of the worker: any change will do. */
    mark = atomic_load_explicit(&words->mark, memory_order_relaxed) +
           atomic_load_explicit(&words->head, memory_order_relaxed) +
           ((uint64_t)atomic_load_explicit(&channel->theirs.header->state_sequence,
                                           memory_order_relaxed)
            << 32);
    if (mark == slot->worker.watchdog_mark)
        return false;
    slot->worker.watchdog_mark = mark;
    return true;
}

static usec_t slot_watchdog_deadline(const struct slot *slot)
{
    return usec_add(slot->worker.watchdog_seen, slot->pool->config->watchdog);
}

/* When to look for a sign of life next. An actor only changes a counter, so its sign of life is
 * dated by the look that finds it; looking often keeps the error small. Services send datagrams. */
static usec_t slot_next_look(const struct slot *slot)
{
    const usec_t deadline = slot_watchdog_deadline(slot);
    const usec_t pause = slot->pool->config->watchdog / WATCHDOG_LOOKS + 1;

    return slot_is_actor(slot) ? usec_min(deadline, usec_add(slot_now(slot), pause)) : deadline;
}

void slot_arm_clock(struct slot *slot)
{
    usec_t at = USEC_INFINITY;

    if (slot->pool->config->watchdog != USEC_INFINITY && slot_is_watched(slot))
        at = slot_next_look(slot);
    if (slot->n_jobs > 0)
        at = usec_min(at, slot->worker.job_deadline);
    if (slot_is_measured(slot))
        at = usec_min(at, usec_add(slot_now(slot), RECYCLE_MEASURE_EVERY));
    if (at == USEC_INFINITY || (timer_armed(&slot->clock) && timer_at(&slot->clock) <= at))
        return;
    timer_arm(slot_timers(slot), &slot->clock, at);
}

/* Also keeps it for the next supervisor. */
static void set_limit(struct slot *slot, usec_t at)
{
    slot->worker.job_deadline = at;
    if (at != USEC_INFINITY)
        slot_page(slot, slot_job_at_work(slot))->limit = at;
}

void slot_limit_job(struct slot *slot, usec_t at)
{
    set_limit(slot, at);
    if (at != USEC_INFINITY || slot->pool->config->watchdog != USEC_INFINITY)
        slot_arm_clock(slot);
}

void slot_clock_job(struct slot *slot, const struct job *job)
{
    slot->worker.watchdog_seen = slot_now(slot);
    slot->worker.put_off = false;
    slot_limit_job(slot, usec_add(slot->worker.watchdog_seen, job->timeout));
}

void slot_clock_started(struct slot *slot, const struct job *job)
{
    if (!job_cancel_requested(job))
        set_limit(slot, usec_add(slot_now(slot), job->timeout));
}

/* Arms the clock while there is something to watch; else the next message does. */
static void slot_wind_clock(struct slot *slot)
{
    if (slot->actor)
        slot->actor->inbox_watched =
            slot->clocks_messages && !slot_has_messages(slot) && !slot_is_measured(slot);
    slot_arm_clock(slot);
}

void slot_clock_messages(struct slot *slot)
{
    if (!slot->clocks_messages)
        return;
    if (slot->n_jobs == 0) {
        (void)slot_gave_sign_of_life(slot); /* an earlier one does not count */
        slot->worker.watchdog_seen = slot_now(slot);
    }
    slot_wind_clock(slot);
}

void slot_review_clock(struct slot *slot)
{
    const struct config_group *config = slot->pool->config;
    const bool wanted = slot->actor && slot_is_up(slot) &&
                        (config->watchdog != USEC_INFINITY || config->max_memory != CONFIG_UNSET);

    if (slot->clocks_messages == wanted)
        return;
    slot->clocks_messages = wanted;
    slot_wind_clock(slot);
    slot_clock_messages(slot);
}

void slot_catch_up(struct slot *slot)
{
    for (unsigned n = 0; slot->worker.endpoint_open && n < CATCH_UP_BATCHES; n++)
        if (!endpoint_catch_up(&slot->worker.endpoint))
            break;
    notify_server_catch_up(&slot->worker.notify);
}

static bool slot_is_late(const struct slot *slot, usec_t now)
{
    return (slot->n_jobs > 0 && now >= slot->worker.job_deadline) ||
           (slot_is_watched(slot) && now >= slot_watchdog_deadline(slot));
}

/* The time-out of a job begins after the message that the worker handles. */
static bool slot_job_is_late(struct slot *slot, usec_t now)
{
    const struct job *job;

    if (slot->n_jobs == 0 || now < slot->worker.job_deadline)
        return false;
    job = list_first_entry(&slot->jobs, struct job, link);
    if (job->started || job_cancel_requested(job) || !slot_has_message_in_hand(slot))
        return true;
    set_limit(slot, usec_add(now, job->timeout));
    return false;
}

static void slot_ran_out_of_time(struct slot *slot)
{
    slot->worker.job_deadline = USEC_INFINITY;
    slot_end_worker(slot, DEATH_JOB_TIMEOUT, LIFECYCLE_EVENT_JOB_TIMEOUT);
}

static void slot_measure_messages(struct slot *slot)
{
    const uint64_t consumed = slot->actor->counters.consumed;

    if (consumed == slot->messages_measured || slot_now(slot) < slot->recycle.measure_at)
        return;
    slot->messages_measured = consumed;
    slot_after_work(slot);
}

void slot_on_clock(struct timer *timer, usec_t now)
{
    struct slot *slot = slot_of(timer, clock);

    if (slot_is_late(slot, now))
        slot_catch_up(slot);
    if (slot->worker.process.ended)
        return;
    if (slot_job_is_late(slot, now)) {
        slot_ran_out_of_time(slot);
        return;
    }
    /* Updates which messages the worker has consumed. */
    if (slot->worker.endpoint_open && slot_is_up(slot))
        (void)endpoint_advance(&slot->worker.endpoint);
    if (slot_gave_sign_of_life(slot))
        slot->worker.watchdog_seen = now;
    if (slot_is_watched(slot) && now >= slot_watchdog_deadline(slot)) {
        slot_end_worker(slot, DEATH_WATCHDOG, LIFECYCLE_EVENT_WATCHDOG);
        return;
    }
    if (slot_is_measured(slot))
        slot_measure_messages(slot);
    slot_wind_clock(slot);
}
