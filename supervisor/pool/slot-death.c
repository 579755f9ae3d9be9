/* SPDX-License-Identifier: MIT */
#include "supervisor/event/event-id.h"
#include "supervisor/pool/replacement.h"
#include "supervisor/pool/slot-private.h"
#include "supervisor/pool/spare.h"
#include "supervisor/pool/strategy.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum death_cause slot_cause_of_death(struct slot *slot)
{
    const struct spawn_exit *how = &slot->exit;
    bool ours = how->signalled && slot->signalled;

    if (how->signalled && how->code == SIGKILL && process_take_oom_kill(&slot->process))
        return DEATH_OOM;
    if (slot->feigned && how->signalled && how->code == SIGKILL) {
        (void)snprintf(slot->violation, sizeof(slot->violation),
                       "marked itself as dead while it ran");
        return DEATH_VIOLATION;
    }
    if (slot->kill_reason == DEATH_STOP && how->signalled && !ours && how->code != SIGKILL)
        return DEATH_SIGNAL;
    if (slot->kill_reason != DEATH_EXIT)
        return slot->kill_reason;
    return how->signalled ? DEATH_SIGNAL : DEATH_EXIT;
}

static void slot_write_report(struct slot *slot, struct death *death)
{
    death->pid = slot->process.pid;
    death->exit = slot->exit;
    death->uptime = usec_sub(slot_now(slot), slot->started_at);
    death->cause = slot->died_of;
    death_describe(death);
    if (death->cause == DEATH_VIOLATION)
        (void)snprintf(death->detail, sizeof(death->detail), "broke the protocol: %s",
                       slot->violation);
    if (death->cause == DEATH_STOP && slot->leave_reason[0] != '\0')
        (void)snprintf(death->detail, sizeof(death->detail), "ended itself: %s",
                       slot->leave_reason);
    slot_report_messages(slot, death);
}

/* What it answered before it died counts; what it still has in hand is lost to it. */
void slot_action_reap(struct slot *slot)
{
    struct death fallback = {.references = 2, .cause = DEATH_EXIT}, *death;

    if (slot->endpoint_open)
        endpoint_drain(&slot->endpoint);
    slot_health_note_death(slot);
    capture_finish(&slot->process.output);
    slot->died_of = slot_cause_of_death(slot);
    slot->undecided = false;
    death = slot_new_report(slot);
    if (!death) {
        list_init(&fallback.link);
        fallback.cause = slot->died_of;
        death_describe(&fallback);
    } else {
        slot_write_report(slot, death);
        slot_publish_report(slot, death);
    }
    slot_disarm(slot);
    timer_disarm(slot_timers(slot), &slot->age_timer);
    process_release(&slot->process);
    slot_recover_messages(slot, death);
    slot_close_endpoint(slot);
    notify_server_deinit(&slot->notify);
    slot_lose_jobs(slot, death ? death : &fallback);
    death_unref(death);
}

/* ---- restart ---- */

static bool slot_exit_was_clean(const struct slot *slot)
{
    return slot->kill_reason == DEATH_EXIT && !slot->exit.unknown && !slot->exit.signalled &&
           slot->exit.code == 0;
}

/* An actor that leaves unasked has failed, however politely: its pool is one short. */
static bool slot_restart_wanted(const struct slot *slot)
{
    if (!slot->wanted || slot->pool->config->restart == CONFIG_RESTART_NO)
        return false;
    return slot_is_actor(slot) || slot->spawn_failed ||
           slot->pool->config->restart == CONFIG_RESTART_ALWAYS || !slot_exit_was_clean(slot);
}

struct restart_tally *slot_tally(struct slot *slot)
{
    return slot->pool->config->strategy == CONFIG_ONE_FOR_ONE ? &slot->tally : &slot->pool->tally;
}

static struct restart_policy slot_restart_policy(const struct slot *slot)
{
    const struct config_group *config = slot->pool->config;

    return (struct restart_policy){
        .backoff = {.min = config->min, .max = config->max, .random = config->random},
        .burst = config->start_limit_burst,
        .interval = config->start_limit_interval,
    };
}

/* Counts the death, or failed start. 0 or BACKOFF_E_LIMIT. */
static int slot_restart_delay(struct slot *slot, usec_t *ret)
{
    const struct restart_policy policy = slot_restart_policy(slot);
    struct backoff_random *random = slot_context(slot)->random;
    const enum restart_death death =
        slot->spawn_failed ? RESTART_UNHEALTHY : slot_health_judge(slot);

    if (death == RESTART_UNHEALTHY)
        slot_health_failed(slot);
    else if (death == RESTART_HEALTHY)
        slot_health_worked(slot);
    if (slot->spawn_failed) {
        *ret = restart_after_failed_spawn(slot_tally(slot), &policy, random);
        return 0;
    }
    return restart_after_death(slot_tally(slot), &policy, death, slot_now(slot), random, ret);
}

void slot_restart_due(struct slot *slot)
{
    if (slot->held) {
        slot->pool->handler->restart_due(slot->pool);
    } else if (spare_is_ready(slot)) {
        spare_take_over(slot);
        slot_event(slot, LIFECYCLE_EVENT_NOT_WANTED);
    } else {
        slot_start_in_turn(slot);
    }
}

void slot_hand_over(struct slot *slot)
{
    const struct restart_policy policy = slot_restart_policy(slot);
    usec_t delay;

    if (!spare_is_ready(slot) || !slot_restart_wanted(slot))
        return;
    (void)endpoint_advance(&slot->endpoint); /* what it has consumed is its merit */
    if (!restart_is_immediate(&slot->tally, &policy, slot_health_judge(slot), slot_now(slot)) ||
        slot_restart_delay(slot, &delay) != 0)
        return;
    slot->n_restarts++;
    spare_take_over(slot);
}

/* It died, or could not be started, and is to come back. */
static void slot_schedule_restart(struct slot *slot)
{
    bool died = !slot->spawn_failed;
    usec_t delay;

    if (slot_restart_delay(slot, &delay) == BACKOFF_E_LIMIT) {
        replacement_forget(slot);
        slot_event(slot, LIFECYCLE_EVENT_LIMIT_HIT);
        spare_review(slot);
        slot_tell(slot, LOG_LEVEL_ERROR, "worker.failed", EVENT_ID_WORKER_FAILED, NULL,
                  "died too often (StartLimitBurst): it stays down until it is reset");
        return;
    }
    slot->spawn_failed = false;
    slot->n_restarts++;
    if (replacement_take_over(slot)) {
        slot_event(slot, LIFECYCLE_EVENT_NOT_WANTED);
        return;
    }
    if (died)
        strategy_on_death(slot);
    if (delay == 0) {
        slot_restart_due(slot);
        return;
    }
    slot->restart_at = usec_add(clock_realtime(), delay);
    slot_arm(slot, delay);
}

void slot_action_schedule(struct slot *slot)
{
    slot->undecided = false;
    if (slot->restart_asked && !slot->retired) {
        /* It was stopped to be started again, and needed a signal for it: no failure to hold
         * against it. */
        slot->restart_asked = false;
        slot->wanted = true;
        strategy_forget(slot);
        slot_start_in_turn(slot);
        return;
    }
    replacement_on_failure(slot);
    if (slot->wanted && slot->held) {
        strategy_on_down(slot);
        return;
    }
    if (slot_restart_wanted(slot)) {
        slot_schedule_restart(slot);
        return;
    }
    slot->wanted = false;
    slot->spawn_failed = false;
    replacement_forget(slot);
    strategy_forget(slot);
    slot_event(slot, LIFECYCLE_EVENT_NOT_WANTED);
}
