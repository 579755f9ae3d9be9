/* SPDX-License-Identifier: MIT */
/*
 * The clock over what a worker has in hand: a job's time, WatchdogSec=, and MaxMemory= of one that
 * handles messages (after a job it is looked at at once). One timer, armed late rather than
 * re-armed with everything that is handed over: it finds out when it fires that it is too early.
 */

#include "supervisor/pool/slot/slot-private.h"

#include "shared/base/log.h"
#include "supervisor/job/job.h"
#include "supervisor/message/actor.h"

/* How often a sign of life is looked for within WatchdogSec=. */
#define WATCHDOG_LOOKS 10
/* What is read of a worker's before it is judged: one that goes on writing is not waited for. */
#define CATCH_UP_BATCHES 64

/* ---- what there is to look at ---- */

/*
 * Whether it is to handle a message now. What lies in the inbox of one that is paused may lie
 * there; what it has begun, or awaits an answer for, it is to end.
 */
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

/* Whether it has handled messages since its memory was looked at, or will have. */
static bool slot_is_measured(const struct slot *slot)
{
    if (slot->pool->config->max_memory == CONFIG_UNSET || !slot->actor || !slot_is_up(slot))
        return false;
    return slot->actor->counters.consumed != slot->messages_measured || slot_has_messages(slot);
}

/* ---- when ---- */

/* Whether the worker has published or handled anything, or sent a heartbeat, since this was asked
 * last. */
static bool slot_gave_sign_of_life(struct slot *slot)
{
    const struct memory_header *header;
    uint64_t mark;

    if (!slot->worker.endpoint_open)
        return false;
    header = slot->worker.endpoint.channel.theirs.header;
    /* Pairs with the stores of the worker: any change will do, none is ordered. */
    mark = atomic_load_explicit(&header->mark, memory_order_relaxed) +
           atomic_load_explicit(&header->head, memory_order_relaxed) +
           ((uint64_t)atomic_load_explicit(&header->state_sequence, memory_order_relaxed) << 32);
    if (mark == slot->worker.watchdog_mark)
        return false;
    slot->worker.watchdog_mark = mark;
    return true;
}

static usec_t earlier(usec_t a, usec_t b)
{
    return a < b ? a : b;
}

static usec_t slot_watchdog_deadline(const struct slot *slot)
{
    return usec_add(slot->worker.watchdog_seen, slot->pool->config->watchdog);
}

/*
 * When to look for a sign of life. An actor leaves it in its memory, without its time: what is
 * found counts as given when it is found, so the end of the watchdog's time is known that exactly.
 * Services send theirs.
 */
static usec_t slot_next_look(const struct slot *slot)
{
    const usec_t deadline = slot_watchdog_deadline(slot);
    const usec_t pause = slot->pool->config->watchdog / WATCHDOG_LOOKS + 1;

    return slot_is_actor(slot) ? earlier(deadline, usec_add(slot_now(slot), pause)) : deadline;
}

void slot_arm_clock(struct slot *slot)
{
    usec_t at = USEC_INFINITY;

    if (slot->pool->config->watchdog != USEC_INFINITY && slot_is_watched(slot))
        at = slot_next_look(slot);
    if (slot->n_jobs > 0)
        at = earlier(at, slot->worker.job_deadline);
    if (slot_is_measured(slot))
        at = earlier(at, usec_add(slot_now(slot), RECYCLE_MEASURE_EVERY));
    if (at == USEC_INFINITY || (timer_armed(&slot->clock) && slot->clock.at <= at))
        return;
    slot_arm_timer(slot, &slot->clock, at);
}

/* ---- when it begins ---- */

void slot_clock_job(struct slot *slot, const struct job *job)
{
    slot->worker.watchdog_seen = slot_now(slot);
    slot->worker.job_deadline = usec_add(slot->worker.watchdog_seen, job->timeout);
    slot_arm_clock(slot);
}

void slot_clock_started(struct slot *slot, const struct job *job)
{
    /* Later than what the clock is armed for: it finds out. */
    if (!job->cancel_requested)
        slot->worker.job_deadline = usec_add(slot_now(slot), job->timeout);
}

/* Armed as long as there is something to look at; then it wants to hear of the next message. */
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
        (void)slot_gave_sign_of_life(slot); /* that was before */
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

/* ---- when it fires ---- */

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

/* The time of its job is over. That of one that waits for the end of a message has not begun. */
static bool slot_job_is_late(struct slot *slot, usec_t now)
{
    const struct job *job;

    if (slot->n_jobs == 0 || now < slot->worker.job_deadline)
        return false;
    job = list_entry(list_first(&slot->jobs), struct job, link);
    if (job->started || job->cancel_requested || !slot_has_message_in_hand(slot))
        return true;
    slot->worker.job_deadline = usec_add(now, job->timeout);
    return false;
}

static void slot_ran_out_of_time(struct slot *slot)
{
    const struct job *job = list_entry(list_first(&slot->jobs), struct job, link);

    endpoint_mark(&slot->worker.endpoint, job->handle);
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
    /* What it has consumed is noticed when there is a reason to: here is one. */
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
