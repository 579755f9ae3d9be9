/* SPDX-License-Identifier: MIT */
#include "supervisor/config/names/names.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/control/control.h"
#include "supervisor/event/event-id.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/loop/taker.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/supervisor-private.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void kill_all(struct supervisor *supervisor)
{
    registry_each_group (group, &supervisor->parts.registry)
        group_each_cell (cell, group)
            pool_each_slot (slot, &cell->pool)
                process_kill_all(&slot->worker.process);
}

static void on_stop_timeout(struct timer *timer, usec_t now)
{
    struct supervisor *supervisor = supervisor_of(timer, stop_timer);

    if (supervisor->end_by > 0) {
        loop_defer(loop_of(supervisor), &supervisor->review);
        return;
    }
    log_warning("not all workers stopped within TimeoutStopSec: they are killed");
    kill_all(supervisor);
}

static void stop(struct supervisor *supervisor)
{
    struct loop *loop = loop_of(supervisor);

    supervisor->parts.control.state = CONTROL_STOPPING;
    supervisor_end_reload(supervisor);
    supervisor_end_upgrade(supervisor);
    notify_tell(&supervisor->notify, SERVICE_STOPPING, loop_now(loop));
    event_emit(&supervisor->parts.events, (struct event){
                                              .level = LOG_LEVEL_NOTICE,
                                              .type = "supervisor.stopping",
                                              .message_id = EVENT_ID_STOPPING,
                                              .message = "stopping",
                                          });
    supervisor_log_losses(supervisor);
    plans_stop(&supervisor->parts.plans);
    registry_each_group (group, &supervisor->parts.registry)
        group_close(group, "the supervisor is stopping");
    timer_arm(loop_timers(loop), &supervisor->stop_timer,
              usec_add(loop_now(loop), supervisor->parts.control.config->timeout_stop));
    loop_defer(loop, &supervisor->review);
}

void supervisor_on_signal(void *userdata, int signo, pid_t sender)
{
    struct supervisor *supervisor = userdata;

    if (signo == SIGCHLD) {
        names_reap();
        return;
    }
    log_info("%s received from process %d", signo == SIGHUP ? "SIGHUP" : "stop signal",
             (int)sender);
    if (signo == SIGHUP) {
        if (supervisor->parts.control.state != CONTROL_STOPPING)
            supervisor_hang_up(supervisor);
    } else if (supervisor->parts.control.state != CONTROL_STOPPING) {
        stop(supervisor);
    } else {
        log_warning("asked to stop a second time: everything is killed");
        kill_all(supervisor);
    }
}

static void on_event(struct event_subscriber *subscriber, const struct event *event)
{
    struct supervisor *supervisor = supervisor_of(subscriber, on_event);

    loop_defer(loop_of(supervisor), &supervisor->review);
}

int supervisor_new(struct supervisor **ret, const struct supervisor_options *options)
{
    struct supervisor *supervisor = calloc(1, sizeof(*supervisor));
    int r;

    if (!supervisor) {
        log_error("cannot start: %s", strerror(ENOMEM));
        return -ENOMEM;
    }
    supervisor->options = options;
    supervisor->cgroups = (struct cgroup_tree)CGROUP_TREE_NULL;
    supervisor->journal = (struct journal)JOURNAL_NULL;
    supervisor->signals = (struct signals)SIGNALS_NULL;
    supervisor->notify.manager.fd = -1;
    supervisor->socket_lock = supervisor->socket_inotify = -1;
    death_log_init(&supervisor->parts.deaths, 0);
    message_context_init(&supervisor->parts.messages);
    list_init(&supervisor->parts.events.subscribers);
    list_init(&supervisor->parts.jobs.unused);
    list_init(&supervisor->parts.jobs.unused_waiters);
    job_table_init_telling(&supervisor->parts.jobs);
    job_ties_init(&supervisor->parts.jobs.ties);
    list_init(&supervisor->parts.durable.unread);
    list_init(&supervisor->parts.durable.queries);
    names_on_disk_init(&supervisor->parts.durable.names);
    names_on_disk_init(&supervisor->parts.durable.unique);
    registry_init(&supervisor->parts.registry);
    settings_init(&supervisor->parts.stops, &STOP_ROWS);
    supervisor->on_event.fn = on_event;
    list_init(&supervisor->on_event.link);
    loop_deferred_init(&supervisor->review, supervisor_review);
    supervisor_init_reload(supervisor);
    supervisor_init_upgrade(supervisor);
    timer_init(&supervisor->status_timer, supervisor_on_status_due);
    timer_init(&supervisor->stop_timer, on_stop_timeout);
    timer_init(&supervisor->opening_timer, supervisor_on_opening_timeout);
    if (journal_is_stderr() && journal_init(&supervisor->journal, "trouped", NULL) == 0) {
        journal_log_to(&supervisor->journal);
        supervisor->parts.process.journal = &supervisor->journal;
    }
    r = supervisor_open(supervisor);
    if (r < 0) {
        supervisor_free(supervisor);
        return r;
    }
    event_subscribe(&supervisor->parts.events.subscribers, &supervisor->on_event);
    supervisor_use_cgroups(supervisor);
    if (supervisor->parts.control.config_problem)
        supervisor_await_config(supervisor);
    else
        r = supervisor_make_groups(supervisor);
    if (r < 0) {
        /* Nothing is freed, as that would end the workers that the last supervisor has left. The
         * keeper still holds them for the next supervisor. */
        log_error("cannot start the groups: %s", strerror(-r));
        return r;
    }
    if (!supervisor->parts.control.config_problem)
        supervisor_start_groups(supervisor);
    loop_defer(loop_of(supervisor), &supervisor->review);
    /* Before the first request: its reply may be how a client learns that an upgrade is done. */
    supervisor_report_ready(supervisor);
    if (!supervisor->parts.control.config_problem)
        supervisor_forget_saved(supervisor);
    *ret = supervisor;
    return 0;
}

int supervisor_run(struct supervisor *supervisor)
{
    int r;

    do {
        r = loop_run(loop_of(supervisor));
        job_tell_rest(&supervisor->parts.jobs);
    } while (r == 0 && supervisor->upgrade.approved && !supervisor_save(supervisor));
    if (r < 0)
        log_error("the event loop failed: %s", strerror(-r));
    supervisor_close_stores(supervisor);
    if (r < 0)
        return r;
    control_drain(supervisor->control, supervisor->upgrade.approved);
    if (!supervisor->upgrade.approved)
        return 0;
    supervisor_hand_over(supervisor);
    taker_stop(); /* a late one must not receive what is sent to the next supervisor */
    return SUPERVISOR_E_UPGRADE;
}

/* Workers are left only after the loop failed; the kernel ends them with us. */
static void free_groups(struct supervisor *supervisor)
{
    struct registry *registry = &supervisor->parts.registry;

    registry_each_group (group, registry)
        if (!group_down(group))
            return;
    while (registry->n_groups > 0) {
        struct group *group = registry->sorted[registry->n_groups - 1];

        registry_remove(registry, group);
        group_free(group);
    }
    registry_deinit(registry);
    limit_table_deinit(&supervisor->parts.limits);
    settings_deinit(&supervisor->parts.stops);
    message_context_deinit(&supervisor->parts.messages);
}

struct supervisor *supervisor_free(struct supervisor *supervisor)
{
    struct parts *parts;

    if (!supervisor)
        return NULL;
    parts = &supervisor->parts;
    event_unsubscribe(&supervisor->on_event);
    if (parts->loop) {
        supervisor_end_reload(supervisor);
        supervisor_end_upgrade(supervisor);
    }
    supervisor_close_socket(supervisor);
    if (parts->durable.store) { /* its thread hangs, and uses the rest: the process ends */
        taker_stop();
        cgroup_tree_deinit(&supervisor->cgroups);
        return NULL;
    }
    plans_deinit(&parts->plans);
    free_groups(supervisor);
    if (parts->loop) {
        timer_disarm(loop_timers(parts->loop), &supervisor->status_timer);
        timer_disarm(loop_timers(parts->loop), &supervisor->stop_timer);
        timer_disarm(loop_timers(parts->loop), &supervisor->opening_timer);
        timer_disarm(loop_timers(parts->loop), &supervisor->config_timer);
        loop_undefer(&supervisor->review);
        work_queue_deinit(&parts->announcements);
        endpoint_stock_deinit(&parts->stock);
        process_context_deinit(&parts->process);
        job_table_deinit(&parts->jobs);
        names_on_disk_deinit(&parts->durable.names);
        names_on_disk_deinit(&parts->durable.unique);
        event_bus_deinit(&parts->events);
        limited_log_deinit(&parts->log);
        death_log_deinit(&parts->deaths);
    }
    signals_deinit(&supervisor->signals);
    notify_deinit(&supervisor->notify);
    if (parts->loop)
        alarms_deinit(&parts->alarms);
    cgroup_tree_deinit(&supervisor->cgroups);
    taker_set_loop(NULL);
    loop_free(parts->loop);
    taker_stop();
    config_free(supervisor->config);
    config_problems_deinit(&supervisor->problems);
    strv_free(parts->control.kept_back);
    journal_deinit(&supervisor->journal);
    free(supervisor->runtime_directory);
    free(supervisor->socket_variable);
    free(supervisor);
    return NULL;
}
