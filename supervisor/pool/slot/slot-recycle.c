/* SPDX-License-Identifier: MIT */
/* Replaces workers after MaxJobs=, MaxMemory=, MaxAgeSec=. */

#include "supervisor/message/actor.h"
#include "supervisor/pool/slot/slot-private.h"
#include "supervisor/pool/slot/slot-template.h"

static void slot_is_worn(struct slot *slot, enum recycle_verdict verdict)
{
    slot->pool->slot_handler->worn(slot, recycle_reason(verdict));
}

/* MaxJobs=1: the worker is of no use any more, so it does not wait for a successor. */
static void slot_renew(struct slot *slot)
{
    if (slot->role != SLOT_MEMBER || slot->n_jobs > 0)
        return;
    if (slot->standby && slot->index < slot->pool->config->spare)
        slot_is_worn(slot, RECYCLE_JOBS); /* the spare takes its place */
    else
        slot_restart(slot);
}

void slot_after_work(struct slot *slot)
{
    const struct config_group *config = slot->pool->config;
    enum recycle_verdict verdict;
    uint64_t bytes;

    slot_health_worked(slot);
    if (!slot_is_up(slot))
        return;
    if (slot_is_for_one_job(slot) && slot->worker.jobs_done > 0) {
        slot_renew(slot);
        return;
    }
    verdict = recycle_after_job(&slot->recycle, config, slot->worker.jobs_done, slot_now(slot));
    /* The worker may have died since its job ended. */
    if (verdict == RECYCLE_MEASURE)
        verdict = recycle_read_memory(slot->worker.process.pid, &bytes) < 0
                      ? RECYCLE_KEEP
                      : recycle_measured(&slot->recycle, config, bytes);
    if (verdict != RECYCLE_KEEP)
        slot_is_worn(slot, verdict);
}

void slot_arm_age(struct slot *slot)
{
    if (!slot_is_up(slot) || slot->role == SLOT_SPARE)
        return;
    timer_arm(slot_timers(slot), &slot->age_timer,
              recycle_age_at(&slot->recycle, slot->pool->config));
}

static uint64_t n_handled(const struct slot *slot)
{
    return slot->worker.jobs_done + (slot->actor ? slot->actor->counters.consumed : 0);
}

void slot_await_idle(struct slot *slot)
{
    const usec_t idle = slot->pool->config->memory_reclaim;

    if (idle == USEC_INFINITY || timer_armed(&slot->reclaim_timer) || !slot_is_up(slot))
        return;
    slot->n_seen = n_handled(slot);
    timer_arm(slot_timers(slot), &slot->reclaim_timer, usec_add(slot_now(slot), idle));
}

void slot_on_idle(struct timer *timer, usec_t now)
{
    struct slot *slot = slot_of(timer, reclaim_timer);

    if (slot->n_jobs > 0 || n_handled(slot) != slot->n_seen)
        slot_await_idle(slot);
    else if (cgroup_reclaim(&slot->worker.process.cgroup) == 0)
        slot_tell(slot, (struct event){.level = LOG_LEVEL_DEBUG, .type = "worker.reclaimed"},
                  "is idle: its memory is reclaimed");
}

void slot_take_config(struct slot *slot)
{
    process_take_config(&slot->worker.process, slot->pool->config);
    slot_arm_age(slot);
    timer_disarm(slot_timers(slot), &slot->reclaim_timer);
    slot_await_idle(slot);
    slot_template_review(slot);
    if (slot->actor) {
        slot->actor->config = slot->pool->config;
        slot_review_clock(slot);
    }
    if (slot_is_up(slot) && slot_is_for_one_job(slot) && slot->worker.jobs_done > 0)
        slot_renew(slot);
}

void slot_on_age(struct timer *timer, usec_t now)
{
    struct slot *slot = slot_of(timer, age_timer);

    if (slot_is_up(slot))
        slot_is_worn(slot, RECYCLE_AGE);
}
