/* SPDX-License-Identifier: MIT */
/* Decides whether and when a dead worker restarts: Restart=, backoff, start limit. */

#include "supervisor/event/event-id.h"
#include "supervisor/pool/pool-private.h"
#include <errno.h>

/* Whether the worker ended by itself, in one of these ways. */
static bool ended_with(const struct slot *slot, const struct config_statuses *statuses)
{
    const struct spawn_exit *how = &slot->worker.process.exit;
    const unsigned code = (unsigned)how->code & UINT8_MAX;

    if (slot->worker.spawn_failed || slot->worker.kill_reason != DEATH_EXIT || how->unknown)
        return false;
    if (how->signalled)
        return statuses->signals >> (code - 1) & 1;
    return statuses->codes[code / 64] >> code % 64 & 1;
}

static bool exit_was_clean(const struct slot *slot)
{
    static const struct config_statuses zero = {.codes = {1}};

    return (ended_with(slot, &zero) || ended_with(slot, &slot->pool->config->success)) &&
           (slot->worker.readiness == WORKER_CAME_UP || slot->pool->config->type != CONFIG_NOTIFY);
}

/* An actor that ends by itself has failed, whatever its exit status. */
static bool restart_is_wanted(const struct slot *slot)
{
    if (slot->plan != SLOT_ON || slot->pool->config->restart == CONFIG_RESTART_NO)
        return false;
    if (slot_is_actor(slot) || slot->worker.spawn_failed)
        return true;
    return !ended_with(slot, &slot->pool->config->no_restart) &&
           (slot->pool->config->restart == CONFIG_RESTART_ALWAYS || !exit_was_clean(slot));
}

/* A worker that is not restarted is stopped if it was asked to end, and has failed otherwise. */
static bool has_failed(const struct slot *slot)
{
    if (slot->plan != SLOT_ON || slot->retired)
        return false;
    if (slot->worker.spawn_failed)
        return true;
    return slot->died_of != DEATH_STOP && (slot_is_actor(slot) || !exit_was_clean(slot));
}

static struct restart_policy restart_policy_of(const struct slot *slot)
{
    const struct config_group *config = slot->pool->config;

    return (struct restart_policy){
        .backoff = {.min = config->min, .max = config->max, .random = config->random},
        .burst = config->start_limit_burst,
        .interval = config->start_limit_interval,
    };
}

/* Whether the worker was not started because Strict=yes asks for what this system cannot enforce.
 */
static bool is_refused(const struct slot *slot)
{
    return slot->worker.spawn_failed && slot->worker.process.error.error != 0 &&
           spawn_step_is_final(slot->worker.process.error.step);
}

/* Returns whether another start would probably also fail: the new process has reported why its
 * program does not run, and the reason is not a shortage. */
static bool failed_lastingly(const struct slot *slot)
{
    switch (-slot->worker.process.error.error) {
    case 0:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENOSPC:
    case ETXTBSY:
        return false;
    default:
        return slot->worker.process.error.step != SPAWN_CLONE;
    }
}

/* Counts the death or failed start. Returns 0 or BACKOFF_E_LIMIT. */
static int restart_delay(struct slot *slot, usec_t *ret)
{
    const struct restart_policy policy = restart_policy_of(slot);
    struct backoff_random *random = slot_context(slot)->random;
    const enum restart_death death =
        slot->worker.spawn_failed ? RESTART_UNHEALTHY : slot_health_judge(slot);

    if (death == RESTART_UNHEALTHY)
        slot_health_failed(slot);
    else if (death == RESTART_HEALTHY)
        slot_health_worked(slot);
    if (is_refused(slot))
        return BACKOFF_E_LIMIT;
    if (slot->worker.spawn_failed)
        return restart_after_failed_spawn(&slot->tally, &policy, failed_lastingly(slot),
                                          slot_now(slot), random, ret);
    return restart_after_death(&slot->tally, &policy, death, slot_now(slot), random, ret);
}

void pool_on_restart_due(struct slot *slot)
{
    if (pool_standby_is_ready(slot)) {
        pool_standby_take_over(slot);
        slot_event(slot, LIFECYCLE_EVENT_NOT_WANTED);
    } else {
        slot_start_in_turn(slot);
    }
}

/* If the spare would take over at the death, it does so now, and the death is counted now. */
void pool_on_dying(struct slot *slot)
{
    const struct restart_policy policy = restart_policy_of(slot);
    usec_t delay;

    if (!pool_standby_is_ready(slot) || !restart_is_wanted(slot))
        return;
    (void)endpoint_advance(&slot->worker.endpoint); /* consumed messages prove it healthy */
    if (!restart_is_immediate(&slot->tally, &policy, slot_health_judge(slot), slot_now(slot)) ||
        restart_delay(slot, &delay) != 0)
        return;
    slot_count_restart(slot);
    pool_standby_take_over(slot);
}

/* Gives the slot up until it is reset. */
static void fail(struct slot *slot, const char *why)
{
    slot->worker.spawn_failed = false;
    pool_replacement_forget(slot);
    slot_event(slot, LIFECYCLE_EVENT_LIMIT_HIT);
    pool_standby_review(slot);
    slot_tell(slot,
              (struct event){.level = LOG_LEVEL_ERROR,
                             .type = "worker.failed",
                             .message_id = EVENT_ID_WORKER_FAILED},
              "%s: it stays down until it is reset", why);
}

static void schedule_restart(struct slot *slot)
{
    usec_t delay;

    if (restart_delay(slot, &delay) == BACKOFF_E_LIMIT) {
        fail(slot, is_refused(slot) ? "cannot be confined as it has to be (Strict=yes)"
                                    : "died too often (StartLimitBurst)");
        return;
    }
    slot->worker.spawn_failed = false;
    slot_count_restart(slot);
    if (pool_replacement_take_over(slot)) {
        slot_event(slot, LIFECYCLE_EVENT_NOT_WANTED);
        return;
    }
    if (delay == 0) {
        pool_on_restart_due(slot);
        return;
    }
    slot->restart_at = usec_add(clock_steady(), delay);
    slot_arm(slot, delay);
}

void pool_on_died(struct slot *slot)
{
    if (slot->plan == SLOT_AGAIN && !slot->retired) {
        /* It needed a signal to stop before its restart, which is no failure. */
        slot->plan = SLOT_ON;
        slot_start_in_turn(slot);
        return;
    }
    pool_replacement_on_failure(slot);
    if (restart_is_wanted(slot)) {
        schedule_restart(slot);
        return;
    }
    if (has_failed(slot)) {
        fail(slot, slot->pool->config->restart == CONFIG_RESTART_NO
                       ? "has failed and is not restarted (Restart=no)"
                       : "has failed and is not restarted (RestartPreventExitStatus=)");
        return;
    }
    slot->plan = SLOT_OFF;
    slot->worker.spawn_failed = false;
    pool_replacement_forget(slot);
    slot_event(slot, LIFECYCLE_EVENT_NOT_WANTED);
}
