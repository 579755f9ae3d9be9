/* SPDX-License-Identifier: MIT */

/* Follows the state of all groups: readiness, status line, removed groups. */

#include "supervisor/event/event-id.h"
#include "supervisor/group/cell/limit-table.h"
#include "supervisor/group/group-fault.h"
#include "supervisor/group/group.h"
#include "supervisor/group/order.h"
#include "supervisor/group/undescribed.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/supervisor-private.h"
#include <stdio.h>

/* Many events make one line: each line is a signal on the system bus. */
#define STATUS_DELAY (200 * USEC_PER_MSEC)

/* Counts the places of groups that cannot start and were not stopped. */
static size_t count_blocked(const struct registry *registry)
{
    size_t n = 0;

    for (size_t i = 0; i < registry->n_groups; i++) {
        const struct group *group = registry->sorted[i];

        if (group->wanted && group_is_blocked(group))
            n += group->pools.census.n[CENSUS_UNWANTED];
    }
    return n;
}

static void describe_workers(char *buffer, size_t size, const struct registry *registry)
{
    const struct census *census = &registry->census;

    (void)snprintf(buffer, size, "%zu of %zu workers up in %zu group%s", census->n[CENSUS_UP],
                   census->n[CENSUS_WANTED] + count_blocked(registry), registry->n_groups,
                   registry->n_groups == 1 ? "" : "s");
}

/* Counts groups that should work and do not. `*ret_first` is the first of them. */
static size_t count_troubled(const struct registry *registry, const struct group **ret_first)
{
    size_t n = 0;

    for (size_t i = 0; i < registry->n_groups; i++) {
        const struct group *group = registry->sorted[i];

        if (!group->wanted || group_is_well(group))
            continue;
        if (n++ == 0)
            *ret_first = group;
    }
    return n;
}

/* Empty if there is none. */
static void describe_trouble(char *buffer, size_t size, const struct supervisor *supervisor)
{
    const struct group *first = NULL;
    size_t n = count_troubled(&supervisor->parts.registry, &first);

    *buffer = '\0';
    if (supervisor->parts.control.predecessors.safe_mode)
        (void)snprintf(buffer, size, "; safe mode, all groups are paused");
    else if (supervisor_store_is_opening(supervisor))
        (void)snprintf(buffer, size, "; the store of durable jobs is still being opened");
    else if (n > 1)
        (void)snprintf(buffer, size, "; %zu groups are in trouble", n);
    else if (n == 1 && group_is_blocked(first))
        (void)snprintf(buffer, size, "; %s cannot start", first->name);
    else if (n == 1)
        (void)snprintf(buffer, size, "; %s is %s", first->name, group_state(first));
}

static void tell_status(struct supervisor *supervisor)
{
    char workers[96], trouble[CONFIG_GROUP_NAME_MAX + 64];

    describe_workers(workers, sizeof(workers), &supervisor->parts.registry);
    describe_trouble(trouble, sizeof(trouble), supervisor);
    notify_status(&supervisor->notify, loop_now(loop_of(supervisor)), "%s%s%s", workers, trouble,
                  *trouble ? ", see troupectl status" : "");
}

void supervisor_report_ready(struct supervisor *supervisor)
{
    struct message_held_end *predecessors = &supervisor->parts.control.predecessors;

    if (supervisor->reported || (predecessors->first && !supervisor->ready))
        return;
    supervisor->reported = true;
    spawner_tell(&supervisor->parts.process.spawner, MESSAGE_READY);
    predecessors->n_upgrades += predecessors->upgrading;
}

/* Ready = every worker has come up once or has failed. */
static void review_readiness(struct supervisor *supervisor)
{
    const struct registry *registry = &supervisor->parts.registry;
    const struct census *census = &registry->census;
    char workers[96], message[128];

    if (supervisor->ready || supervisor_store_is_awaited(supervisor) ||
        census->n[CENSUS_UNDECIDED] > 0 || !list_empty(&registry->pending))
        return;
    supervisor->ready = true;
    supervisor->parts.control.state = CONTROL_RUNNING;
    tell_status(supervisor);
    supervisor_report_ready(supervisor);
    notify_tell(&supervisor->notify, SERVICE_READY, loop_now(loop_of(supervisor)));
    describe_workers(workers, sizeof(workers), registry);
    (void)snprintf(message, sizeof(message), "ready: %s", workers);
    event_emit(&supervisor->parts.events, (struct event){
                                              .level = LOG_LEVEL_NOTICE,
                                              .type = "supervisor.ready",
                                              .message_id = EVENT_ID_READY,
                                              .message = message,
                                          });
    supervisor_resume_reload(supervisor);
    supervisor_resume_upgrade(supervisor);
}

void supervisor_on_status_due(struct timer *timer, usec_t now)
{
    struct supervisor *supervisor = supervisor_of(timer, status_timer);

    if (supervisor->parts.control.state != CONTROL_STOPPING)
        tell_status(supervisor);
}

static bool is_over(const struct group *group)
{
    return !group_is_unread(group) && group_down(group) && group->limits.n_ending == 0 &&
           group->counts.n[JOBS_LIVE] == 0 &&
           (!group_is_undescribed(group) || group->results.n_jobs == 0);
}

/* Frees removed groups that have drained. */
static void reap_groups(struct supervisor *supervisor)
{
    struct registry *registry = &supervisor->parts.registry;
    bool leaves_rows = false;

    list_for_each_entry_safe (group, &registry->removed, struct group, removed_link) {
        if (!is_over(group))
            continue;
        if (!group_clear(group)) {
            loop_defer(loop_of(supervisor), &supervisor->review); /* the rest */
            continue;
        }
        log_notice("group %s is gone", group->name);
        leaves_rows = leaves_rows || (group->config->durable && !group_is_undescribed(group));
        registry_remove(registry, group);
        group_free(group);
        limit_table_forget_unused(&supervisor->parts.limits);
    }
    if (leaves_rows)
        supervisor_scan_store(supervisor);
}

void supervisor_review(struct loop_deferred *deferred)
{
    struct supervisor *supervisor = supervisor_of(deferred, review);
    struct loop *loop = loop_of(supervisor);

    if (supervisor->parts.control.state == CONTROL_STOPPING) {
        if (!order_stop(&supervisor->parts.registry) &&
            list_empty(&supervisor->parts.registry.closings.groups) &&
            supervisor_end_stores(supervisor))
            loop_stop(loop);
        return;
    }
    if (supervisor->parts.control.config_problem)
        return;
    reap_groups(supervisor);
    order_start(&supervisor->parts.registry);
    supervisor_report_ready(supervisor);
    review_readiness(supervisor);
    if (notify_wanted(&supervisor->notify) && !timer_armed(&supervisor->status_timer))
        timer_arm(loop_timers(loop), &supervisor->status_timer,
                  usec_add(loop_now(loop), STATUS_DELAY));
}

/* ---- safe mode ---- */

/* Safe mode: the supervisor has crashed again and again, perhaps because of a job or a message. It
 * lets workers and services run on, and pauses all groups until somebody has looked at it. */

static void hold_back_all(struct supervisor *supervisor, bool held_back)
{
    struct registry *registry = &supervisor->parts.registry;

    registry_each_group (group, registry)
        group_hold_back(group, held_back);
}

void supervisor_enter_safe_mode(struct supervisor *supervisor)
{
    if (!supervisor->parts.control.predecessors.safe_mode)
        return;
    event_emit(&supervisor->parts.events,
               (struct event){
                   .level = LOG_LEVEL_ERROR,
                   .type = "supervisor.safe-mode",
                   .message_id = EVENT_ID_SAFE_MODE,
                   .message = "safe mode after several crashes: all groups are paused until "
                              "troupectl reload",
               });
    hold_back_all(supervisor, true);
}

bool supervisor_leave_safe_mode(struct supervisor *supervisor)
{
    struct control_context *control = &supervisor->parts.control;

    spawner_tell(&supervisor->parts.process.spawner, MESSAGE_FORGIVE);
    if (!control->predecessors.safe_mode)
        return false;
    control->predecessors.safe_mode = false;
    event_emit(&supervisor->parts.events, (struct event){
                                              .level = LOG_LEVEL_NOTICE,
                                              .type = "supervisor.safe-mode-ended",
                                              .message = "safe mode has ended",
                                          });
    hold_back_all(supervisor, false);
    return true;
}
