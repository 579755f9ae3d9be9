/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/slot/slot-health.h"

#include "supervisor/event/event-id.h"
#include "supervisor/job/job.h"
#include "supervisor/message/actor.h"
#include "supervisor/pool/slot/slot-private.h"

bool slot_has_message_in_hand(const struct slot *slot)
{
    const struct actor *actor = slot->actor;
    const struct channel *channel;

    if (!actor || !slot->worker.endpoint_open)
        return false;
    if (actor->mailbox.n_in_hand > 0)
        return true;
    channel = &slot->worker.endpoint.channel;
    /* Partners: the worker's stores around each handler. The values are only compared. */
    return actor->inbox.n_messages > 0 &&
           atomic_load_explicit(&channel->theirs.header->taken, memory_order_relaxed) !=
               atomic_load_explicit(&channel->their_words->head, memory_order_relaxed);
}

static bool is_at_work(const struct slot *slot)
{
    if (slot->n_jobs > 0 && list_first_entry(&slot->jobs, struct job, link)->started)
        return true;
    return slot_has_message_in_hand(slot);
}

/* With less, a worker that dies immediately would be restarted without a pause. */
#define RESET_AFTER_MIN (10 * USEC_PER_MSEC)

static usec_t reset_after(const struct slot *slot)
{
    const usec_t configured = slot->pool->config->reset_after;

    return configured < RESET_AFTER_MIN ? RESET_AFTER_MIN : configured;
}

static bool is_proven(const struct slot *slot)
{
    return slot->worker.jobs_done > 0 ||
           (slot->actor && slot->actor->counters.consumed != slot->health.consumed_before) ||
           usec_sub(slot_now(slot), slot->worker.started_at) >= reset_after(slot);
}

bool slot_is_failing(const struct slot *slot)
{
    return slot->health.n_failures >= SLOT_FAILING;
}

void slot_health_recover(struct slot *slot)
{
    const unsigned n_failures = slot->health.n_failures;
    const bool was_failing = slot_is_failing(slot);

    slot_health_reset(slot);
    if (was_failing)
        slot_tell(slot, (struct event){.level = LOG_LEVEL_NOTICE, .type = "worker.recovered"},
                  "works again after %u failures", n_failures);
}

static void slot_on_proven(struct timer *timer, usec_t now)
{
    struct slot *slot = slot_of(timer, health.timer);

    if (slot_is_up(slot))
        slot_health_worked(slot);
}

void slot_health_watch(struct slot *slot)
{
    struct slot_health *health = &slot->health;
    const usec_t due = usec_add(slot->worker.started_at, reset_after(slot));

    if (health->n_failures > 0 && due != USEC_INFINITY)
        timer_arm(slot_timers(slot), &health->timer, due);
}

void slot_health_note_death(struct slot *slot)
{
    timer_disarm(slot_timers(slot), &slot->health.timer);
    slot->health.at_work = is_at_work(slot);
}

enum restart_death slot_health_judge(const struct slot *slot)
{
    if (is_proven(slot))
        return RESTART_HEALTHY;
    return slot->health.at_work || is_at_work(slot) ? RESTART_AT_WORK : RESTART_UNHEALTHY;
}

static void tell_failing(struct slot *slot)
{
    slot_tell(slot,
              (struct event){.level = LOG_LEVEL_ERROR,
                             .type = "worker.failing",
                             .message_id = EVENT_ID_WORKER_FAILING},
              "is failing: %u times in a row its worker has died before it did anything; the "
              "pauses grow up to MaxSec=",
              slot->health.n_failures);
}

void slot_health_failed(struct slot *slot)
{
    struct slot_health *health = &slot->health;

    if (health->n_failures++ == 0)
        health->since_at = loop_realtime(slot_context(slot)->loop);
    slot_count(slot);
    if (health->n_failures == SLOT_FAILING)
        tell_failing(slot);
}

void slot_health_reset(struct slot *slot)
{
    slot->health.n_failures = 0;
    timer_disarm(slot_timers(slot), &slot->health.timer);
    slot_count(slot);
}

void slot_health_inherit(struct slot *to, const struct slot *from)
{
    to->health.n_failures = from->health.n_failures;
    to->health.since_at = from->health.since_at;
    slot_health_watch(to);
}

void slot_health_init(struct slot *slot)
{
    timer_init(&slot->health.timer, slot_on_proven);
}
