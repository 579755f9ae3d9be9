/* SPDX-License-Identifier: MIT */
/* Stops a worker in steps: stop message, KillSignal=, SIGKILL. */

#include "supervisor/pool/slot/slot-private.h"
#include "supervisor/pool/slot/slot-template.h"
#include <signal.h>

bool slot_send_signal(struct slot *slot, int signal)
{
    if (slot->state != LIFECYCLE_STARTING && !slot_is_up(slot) && slot->state != LIFECYCLE_STOPPING)
        return false;
    process_signal(&slot->worker.process, signal);
    return true;
}

void slot_set_kill_reason(struct slot *slot, enum death_cause cause)
{
    if (slot->worker.kill_reason == DEATH_EXIT || slot->worker.kill_reason == DEATH_STOP)
        slot->worker.kill_reason = cause;
    slot_keep(slot); /* before the worker can end */
}

void slot_end_worker(struct slot *slot, enum death_cause cause, enum lifecycle_event event)
{
    slot_set_kill_reason(slot, cause);
    slot_event(slot, event);
}

/* A stopping actor has two steps before SIGKILL, which share TimeoutStopSec=; others have one. */
static void slot_arm_next_step(struct slot *slot)
{
    const usec_t whole = slot->pool->config->timeout_stop;
    const bool two = slot_is_actor(slot) && slot->worker.kill_reason == DEATH_STOP;

    slot_arm(slot, two && whole != USEC_INFINITY ? whole / 2 : whole);
}

/* Keeps the stop before the signal is sent: the supervisor may die before the worker's end is
 * reported. */
static void slot_note_signal(struct slot *slot)
{
    slot->worker.signalled = SIGNALLED;
    slot_keep(slot);
}

static void slot_signal(struct slot *slot, int signal)
{
    slot_note_signal(slot);
    process_signal(&slot->worker.process, signal);
    /* A stopped process would not handle the signal. */
    if (signal != SIGKILL)
        process_signal(&slot->worker.process, SIGCONT);
    slot_arm_next_step(slot);
}

/* Returns whether all processes of the worker get the signal. An actor ends its own processes. */
static bool slot_signals_all(const struct slot *slot)
{
    const struct config_group *config = slot->pool->config;

    return !slot_is_actor(slot) && config->kill_mode == CONFIG_KILL_CONTROL_GROUP &&
           config->kill_signal != SIGKILL;
}

void slot_action_kill(struct slot *slot)
{
    slot_trace_cancel(slot);
    slot_judge_lost(slot);
    process_kill_all(&slot->worker.process);
}

void slot_action_terminate(struct slot *slot)
{
    if (slot_trace_first(slot, slot_action_terminate))
        return;
    /* Not earlier: a worker that gives up would hide where it hung. */
    if (slot->worker.kill_reason == DEATH_JOB_TIMEOUT && slot->n_jobs > 0)
        endpoint_mark(&slot->worker.endpoint, slot_job_at_work(slot)->handle);
    if (slot->worker.signalled == SIGNALLED)
        slot_action_kill(slot);
    else if (slot_signals_all(slot)) {
        slot_note_signal(slot);
        process_signal_all(&slot->worker.process, slot->pool->config->kill_signal);
        slot_arm_next_step(slot);
    } else
        slot_signal(slot, slot->pool->config->kill_signal);
}

void slot_action_abort(struct slot *slot)
{
    if (!slot_trace_first(slot, slot_action_abort))
        slot_signal(slot, SIGABRT);
}

void slot_action_send_stop(struct slot *slot)
{
    if (slot_is_actor(slot) && slot_send_stop(slot) == 0)
        slot_arm_next_step(slot);
    else
        slot_action_terminate(slot);
}

static void stop(struct slot *slot, bool hurry, bool again)
{
    slot->plan = again ? SLOT_AGAIN : SLOT_OFF;
    task_cancel(&slot->start);
    slot->pool->slot_handler->stopping(slot, hurry);
    slot_end_worker(slot, DEATH_STOP, LIFECYCLE_EVENT_STOP);
    if (hurry && slot->state == LIFECYCLE_STOPPING && !timer_armed(&slot->state_timer))
        slot_arm_next_step(slot);
    slot_template_review(slot); /* also if the slot was down, with a start in its turn */
}

void slot_stop(struct slot *slot, bool hurry)
{
    stop(slot, hurry, false);
}

void slot_restart(struct slot *slot)
{
    if (slot->retired)
        return;
    if (!slot_is_down(slot) && slot->state != LIFECYCLE_BACKOFF) {
        stop(slot, false, true);
        return;
    }
    slot_reset(slot);
    slot_start(slot);
}

void slot_stop_within(struct slot *slot, usec_t time)
{
    const struct timer *timer = &slot->state_timer;
    bool due_before = timer_armed(timer) && timer_at(timer) <= usec_add(slot_now(slot), time);

    if (slot->state == LIFECYCLE_STOPPING && slot->n_jobs > 0 && !due_before)
        slot_arm(slot, time);
    slot_keep(slot);
}

bool slot_kill(struct slot *slot, enum death_cause cause)
{
    if (slot_is_down(slot) || slot->state == LIFECYCLE_KILLING || slot->state == LIFECYCLE_BACKOFF)
        return false;
    slot->pool->slot_handler->killed(slot);
    slot_end_worker(slot, cause, LIFECYCLE_EVENT_TERMINATED);
    return true;
}
