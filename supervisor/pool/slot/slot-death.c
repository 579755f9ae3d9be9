/* SPDX-License-Identifier: MIT */
/* Handles the end of a worker: its cause, its report, its jobs and messages. */

#include "supervisor/pool/slot/slot-private.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum death_cause slot_cause_of_death(struct slot *slot)
{
    const struct spawn_exit *how = &slot->worker.process.exit;
    bool ours = how->signalled && (slot->worker.signalled || slot->worker.was_signalled);

    if (how->signalled && how->code == SIGKILL && process_take_oom_kill(&slot->worker.process))
        return DEATH_OOM;
    if (how->signalled && process_forbidden_call(&slot->worker.process, slot->worker.process.pid))
        return DEATH_SYSTEM_CALL;
    if (slot->worker.feigned && how->signalled && how->code == SIGKILL) {
        slot->worker.violation = "marked itself as dead while it ran";
        return DEATH_VIOLATION;
    }
    if (slot->worker.kill_reason == DEATH_STOP && how->signalled && !ours && how->code != SIGKILL)
        return DEATH_SIGNAL;
    if (slot->worker.kill_reason != DEATH_EXIT)
        return slot->worker.kill_reason;
    return how->signalled ? DEATH_SIGNAL : DEATH_EXIT;
}

static void slot_quote_reason(const struct slot *slot, struct death *death)
{
    (void)snprintf(death->detail, sizeof(death->detail), "ended itself");
    (void)snprintf(death->reason, sizeof(death->reason), "%s", slot->worker.leave_reason);
}

static void slot_write_report(struct slot *slot, struct death *death)
{
    death->pid = slot->worker.process.pid;
    death->exit = slot->worker.process.exit;
    death->uptime = usec_sub(slot_now(slot), slot->worker.started_at);
    death->cause = slot->died_of;
    death_describe(death, slot_explain_death(slot, death->cause));
    if (death->cause == DEATH_SYSTEM_CALL)
        slot_describe_call(slot, death);
    if (death->cause == DEATH_VIOLATION)
        (void)snprintf(death->detail, sizeof(death->detail), "broke the protocol: %s",
                       slot->worker.violation);
    if (death->cause == DEATH_STOP && slot->worker.leave_reason)
        slot_quote_reason(slot, death);
    slot_report_messages(slot, death);
}

/* Jobs still in hand are lost. */
void slot_action_reap(struct slot *slot)
{
    struct death fallback = {.references = 2, .cause = DEATH_EXIT}, *death;

    slot_health_note_death(slot);
    capture_finish(&slot->worker.process.output);
    slot->died_of = slot_cause_of_death(slot);
    slot_counts(slot)->n_died_of[slot->died_of]++;
    death = slot_new_report(slot);
    if (!death) {
        list_init(&fallback.link);
        fallback.cause = slot->died_of;
        death_describe(&fallback, NULL);
    } else {
        slot_write_report(slot, death);
        slot_publish_report(slot, death);
    }
    slot_keep_attempt(slot, death ? death : &fallback); /* the inbox goes with the process */
    slot_disarm(slot);
    timer_disarm(slot_timers(slot), &slot->age_timer);
    process_release(&slot->worker.process);
    slot_recover_messages(slot, death);
    slot_close_endpoint(slot);
    slot_rest_notify(slot);
    slot_lose_jobs(slot, death ? death : &fallback);
    death_unref(death);
}
