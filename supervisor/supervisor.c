/* SPDX-License-Identifier: MIT */
#include "supervisor.h"

#include "../shared/cleanup.h"
#include "cgroup.h"
#include "context.h"
#include "control.h"
#include "event-id.h"
#include "group.h"
#include "journal.h"
#include "loop.h"
#include "notify.h"
#include "order.h"
#include "reload-exchange.h"
#include "reload.h"
#include "router.h"
#include "signals.h"
#include "slot.h"
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>

#define supervisor_of(pointer, member) list_entry(pointer, struct supervisor, member)

struct supervisor {
    struct context context;
    const struct supervisor_options *options;
    struct config *config;
    struct cgroup_tree cgroups;
    struct journal journal;
    struct notify notify;
    struct signals signals;
    struct control *control;
    char *runtime_directory;
    bool ready;
    struct event_subscriber on_event;
    struct loop_deferred review; /* once a turn after something happened */
    struct timer status_timer;   /* counting all workers with each event would cost too much */
    struct timer stop_timer;
};

#define STATUS_DELAY (200 * USEC_PER_MSEC)

static struct loop *loop_of(const struct supervisor *supervisor)
{
    return supervisor->context.loop;
}

/* ---- all groups ---- */

static void kill_all(struct supervisor *supervisor)
{
    size_t cursor = 0;
    struct group *group;
    struct slot *slot;

    while ((group = registry_next(&supervisor->context.registry, &cursor)))
        group_each_cell (cell, group)
            for (size_t i = 0; (slot = cell_next_slot(cell, &i));)
                process_kill_all(&slot->process);
}

/* Removed groups that have drained. */
static void reap_groups(struct supervisor *supervisor)
{
    struct registry *registry = &supervisor->context.registry;
    size_t cursor = 0;
    struct group *group;

    while ((group = registry_next(registry, &cursor)))
        if (group->removed && group_down(group) && group->n_live == 0) {
            log_notice("group %s is gone", group->name);
            registry_remove(registry, group);
            group_free(group);
        }
}

/* ---- readiness and status ---- */

struct census {
    unsigned up, wanted, trouble; /* slots */
    unsigned undecided;           /* groups */
};

static void count_cell(struct census *census, const struct cell *cell)
{
    for (size_t i = 0; i < cell->n_slots; i++) {
        const struct slot *slot = cell->slots[i];
        census->wanted += slot->wanted;
        census->up += slot_is_up(slot);
        census->trouble += slot->state == LIFECYCLE_BACKOFF || slot->state == LIFECYCLE_FAILED;
    }
}

static struct census take_census(struct supervisor *supervisor)
{
    struct census census = {0};
    size_t cursor = 0;
    struct group *group;

    while ((group = registry_next(&supervisor->context.registry, &cursor))) {
        census.undecided += !group_decided(group);
        group_each_cell (cell, group)
            count_cell(&census, cell);
    }
    return census;
}

/* Ready = every worker has come up once or has been seen to fail: the pools' health is status, not
 * start. */
static void review_readiness(struct supervisor *supervisor, const struct census *census)
{
    char message[128];

    if (supervisor->ready || census->undecided > 0)
        return;
    supervisor->ready = true;
    supervisor->context.state = CONTEXT_RUNNING;
    notify_ready(&supervisor->notify, loop_now(loop_of(supervisor)));
    (void)snprintf(message, sizeof(message), "ready: %u of %u workers up in %zu groups", census->up,
                   census->wanted, supervisor->context.registry.n_groups);
    event_emit(&supervisor->context.events, (struct event){
                                                .level = LOG_LEVEL_NOTICE,
                                                .type = "supervisor.ready",
                                                .message_id = EVENT_ID_READY,
                                                .message = message,
                                            });
}

static void count_workers(struct supervisor *supervisor)
{
    struct census census = take_census(supervisor);

    notify_status(&supervisor->notify, loop_now(loop_of(supervisor)),
                  "%u of %u workers up in %zu groups%s", census.up, census.wanted,
                  supervisor->context.registry.n_groups,
                  census.trouble > 0 ? "; some are in trouble, see troupectl status" : "");
    review_readiness(supervisor, &census);
}

static void on_status_due(struct timer *timer, usec_t now)
{
    struct supervisor *supervisor = supervisor_of(timer, status_timer);

    (void)now;
    if (supervisor->context.state != CONTEXT_STOPPING)
        count_workers(supervisor);
}

static void review(struct loop_deferred *deferred)
{
    struct supervisor *supervisor = supervisor_of(deferred, review);
    struct loop *loop = loop_of(supervisor);

    reap_groups(supervisor);
    if (supervisor->context.state == CONTEXT_STOPPING) {
        if (!order_stop(&supervisor->context.registry))
            loop_stop(loop);
        return;
    }
    (void)order_start(&supervisor->context.registry);
    if (!supervisor->ready)
        count_workers(supervisor);
    else if (notify_wanted(&supervisor->notify) && !timer_armed(&supervisor->status_timer))
        (void)timer_arm(loop_timers(loop), &supervisor->status_timer,
                        usec_add(loop_now(loop), STATUS_DELAY));
}

static void on_event(struct event_subscriber *subscriber, const struct event *event)
{
    struct supervisor *supervisor = supervisor_of(subscriber, on_event);

    (void)event;
    loop_defer(loop_of(supervisor), &supervisor->review);
}

/* ---- stopping ---- */

static void on_stop_timeout(struct timer *timer, usec_t now)
{
    (void)now;
    log_warning("not all workers stopped within TimeoutStopSec: they are killed");
    kill_all(supervisor_of(timer, stop_timer));
}

static void stop(struct supervisor *supervisor)
{
    struct loop *loop = loop_of(supervisor);
    size_t cursor = 0;
    struct group *group;

    supervisor->context.state = CONTEXT_STOPPING;
    notify_stopping(&supervisor->notify, loop_now(loop));
    event_emit(&supervisor->context.events, (struct event){
                                                .level = LOG_LEVEL_NOTICE,
                                                .type = "supervisor.stopping",
                                                .message_id = EVENT_ID_STOPPING,
                                                .message = "stopping",
                                            });
    while ((group = registry_next(&supervisor->context.registry, &cursor)))
        group_close(group);
    (void)timer_arm(loop_timers(loop), &supervisor->stop_timer,
                    usec_add(loop_now(loop), supervisor->context.config->timeout_stop));
    loop_defer(loop, &supervisor->review);
}

static void on_signal(void *userdata, int signo, pid_t sender)
{
    struct supervisor *supervisor = userdata;
    struct reload_changes changes = {0};
    struct config_problems problems = CONFIG_PROBLEMS_NULL;

    log_info("%s received from process %d", signo == SIGHUP ? "SIGHUP" : "stop signal",
             (int)sender);
    if (signo == SIGHUP) {
        (void)supervisor->context.reload(&supervisor->context, &changes, &problems);
        reload_changes_deinit(&changes);
        config_problems_deinit(&problems);
    } else if (supervisor->context.state != CONTEXT_STOPPING) {
        stop(supervisor);
    } else {
        log_warning("asked to stop a second time: everything is killed");
        kill_all(supervisor);
    }
}

/* ---- reload ---- */

static int supervisor_reload(struct context *context, struct reload_changes *ret,
                             struct config_problems *problems)
{
    struct supervisor *supervisor = supervisor_of(context, context);
    usec_t now = loop_now(context->loop);
    int r;

    if (context->state != CONTEXT_RUNNING)
        return -EBUSY;
    notify_reloading(&supervisor->notify, now);
    context->state = CONTEXT_RELOADING;
    r = reload(context, supervisor->options->config_directory, &supervisor->config, ret, problems);
    context->config = &supervisor->config->daemon;
    death_log_resize(&context->deaths, context->config->deaths_max);
    dead_letters_resize(&context->dead_letters, context->config->dead_letters_max,
                        context->config->dead_letters_memory_max);
    loop_set_spin(context->loop, context->config->spin);
    if (r == 0 && !supervisor->options->log_level_given)
        log_set_max_level((enum log_level)context->config->log_level);
    context->state = CONTEXT_RUNNING;
    notify_ready(&supervisor->notify, now);
    return r;
}

/* ---- start ---- */

static int start_groups(struct supervisor *supervisor)
{
    struct context *context = &supervisor->context;
    struct reload_changes changes = {0};
    int r;

    while (supervisor->config->n_groups > 0) {
        r = reload_add_group(context, config_take_group(supervisor->config, 0));
        if (r < 0)
            return r;
    }
    r = reload_take_exchanges(context, supervisor->config, &changes);
    reload_changes_deinit(&changes);
    (void)order_start(&context->registry);
    return r;
}

static int load_config(struct supervisor *supervisor)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    int r;

    r = config_load(&supervisor->config, supervisor->options->config_directory, &problems);
    if (r == CONFIG_E_INVALID)
        reload_log_problems(&problems);
    else if (r < 0)
        log_error("%s: cannot read the configuration: %s", supervisor->options->config_directory,
                  strerror(-r));
    config_problems_deinit(&problems);
    if (r != 0)
        return r < 0 ? r : -EINVAL;
    supervisor->context.config = &supervisor->config->daemon;
    if (!supervisor->options->log_level_given)
        log_set_max_level((enum log_level)supervisor->config->daemon.log_level);
    return 0;
}

static int open_loop(struct supervisor *supervisor)
{
    const struct loop_options options = {.force_eventfd = supervisor->options->force_eventfd};
    const char *reason = "";
    int r;

    r = loop_new(&supervisor->context.loop, &options, &reason);
    if (r == LOOP_E_UNAVAILABLE) {
        log_error("io_uring is not available: %s", reason);
        return -ENOSYS;
    }
    if (r < 0)
        log_error("cannot set up the event loop: %s", strerror(-r));
    else
        loop_set_spin(supervisor->context.loop, supervisor->context.config->spin);
    return r;
}

static int open_socket(struct supervisor *supervisor)
{
    bool activated = sd_listen_fds(1) > 0;
    _cleanup_close_ int fd = -1;
    int r;

    fd = activated ? SD_LISTEN_FDS_START : control_listen(supervisor->options->socket_path);
    if (fd < 0)
        return fd; /* it has said why */
    r = control_new(&supervisor->control, &supervisor->context, fd);
    if (r < 0)
        return r;
    (void)TAKE_FD(fd);
    if (!activated)
        control_own_path(supervisor->control, supervisor->options->socket_path);
    return 0;
}

static void open_cgroups(struct supervisor *supervisor)
{
    const char *missing;

    if (cgroup_tree_init(&supervisor->cgroups, NULL) == 0)
        supervisor->context.cgroups = &supervisor->cgroups;
    missing = cgroup_tree_missing(&supervisor->cgroups);
    supervisor->context.cgroups_text = cgroup_tree_text(&supervisor->cgroups);
    if (missing)
        log_notice("%s", missing);
}

static int open_runtime_directory(struct supervisor *supervisor)
{
    _cleanup_free_ char *path = strdup(supervisor->options->socket_path);

    if (!path)
        return -ENOMEM;
    supervisor->runtime_directory = strdup(dirname(path));
    supervisor->context.runtime_directory = supervisor->runtime_directory;
    return supervisor->runtime_directory ? 0 : -ENOMEM;
}

/* Every worker takes descriptors, and so does every large payload that waits. */
static void raise_descriptor_limit(struct context *context)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    context->nofile = limit;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    context->jobs.blobs_max = limit.rlim_cur / 2;
}

static int open_context(struct supervisor *supervisor)
{
    struct context *context = &supervisor->context;
    int r;

    context->reload = supervisor_reload;
    pacer_init(&context->starts, context->loop);
    pacer_init(&context->burials, context->loop);
    alarms_init(&context->alarms, context->loop);
    context->started_at = clock_realtime();
    backoff_random_seed(&context->random, clock_realtime());
    death_log_resize(&context->deaths, context->config->deaths_max);
    dead_letters_resize(&context->dead_letters, context->config->dead_letters_max,
                        context->config->dead_letters_memory_max);
    r = event_bus_init(&context->events);
    if (r == 0)
        r = job_table_init(&context->jobs);
    raise_descriptor_limit(context);
    return r;
}

static int open_all(struct supervisor *supervisor)
{
    usec_t now = clock_now();
    int r;

    r = load_config(supervisor);
    if (r == 0)
        r = open_loop(supervisor);
    if (r == 0)
        r = open_runtime_directory(supervisor);
    if (r == 0)
        r = open_context(supervisor);
    if (r == 0)
        r = notify_init(&supervisor->notify, loop_timers(loop_of(supervisor)), now);
    if (r == 0)
        r = signals_init(&supervisor->signals, loop_of(supervisor), on_signal, supervisor);
    if (r == 0)
        r = open_socket(supervisor);
    return r;
}

int supervisor_new(struct supervisor **ret, const struct supervisor_options *options)
{
    struct supervisor *supervisor = calloc(1, sizeof(*supervisor));
    int r;

    if (!supervisor)
        return -ENOMEM;
    supervisor->options = options;
    supervisor->cgroups = (struct cgroup_tree)CGROUP_TREE_NULL;
    supervisor->journal = (struct journal)JOURNAL_NULL;
    supervisor->signals = (struct signals)SIGNALS_NULL;
    supervisor->notify.fd = -1;
    death_log_init(&supervisor->context.deaths, 0);
    dead_letters_init(&supervisor->context.dead_letters, 0, 0);
    list_init(&supervisor->context.events.subscribers);
    list_init(&supervisor->context.jobs.free);
    ask_table_init(&supervisor->context.asks);
    schedule_table_init(&supervisor->context.schedules);
    supervisor->on_event.fn = on_event;
    list_init(&supervisor->on_event.link);
    loop_deferred_init(&supervisor->review, review);
    timer_init(&supervisor->status_timer, on_status_due);
    timer_init(&supervisor->stop_timer, on_stop_timeout);
    if (journal_is_stderr() && journal_init(&supervisor->journal, "trouped", NULL) == 0) {
        journal_log_to(&supervisor->journal);
        supervisor->context.journal = &supervisor->journal;
    }
    r = open_all(supervisor);
    if (r < 0) {
        supervisor_free(supervisor);
        return r;
    }
    event_subscribe(&supervisor->context.events, &supervisor->on_event);
    open_cgroups(supervisor);
    r = start_groups(supervisor);
    loop_defer(loop_of(supervisor), &supervisor->review);
    if (r < 0) {
        log_error("cannot start the groups: %s", strerror(-r));
        supervisor_free(supervisor);
        return r;
    }
    *ret = supervisor;
    return 0;
}

int supervisor_run(struct supervisor *supervisor)
{
    int r;

    r = loop_run(loop_of(supervisor));
    if (r < 0)
        log_error("the event loop failed: %s", strerror(-r));
    if (r == 0)
        control_drain(supervisor->control);
    return r;
}

/* Those that are nobody's: exchanges. */
static void free_actors(struct context *context)
{
    struct actor *actor;
    size_t cursor = 0;

    while ((actor = actor_next(&context->actors, &cursor)))
        router_remove(actor, "the supervisor is stopping");
    actor_table_deinit(&context->actors);
    ask_table_deinit(&context->asks);
    schedule_table_deinit(&context->schedules);
}

/* Only after a loop that failed there may be workers left; the kernel ends them with us. */
static void free_groups(struct supervisor *supervisor)
{
    struct registry *registry = &supervisor->context.registry;
    size_t cursor = 0;
    struct group *group;

    while ((group = registry_next(registry, &cursor)))
        if (!group_down(group))
            return;
    cursor = 0;
    while ((group = registry_next(registry, &cursor))) {
        registry_remove(registry, group);
        group_free(group);
    }
    registry_deinit(registry);
    free_actors(&supervisor->context);
}

struct supervisor *supervisor_free(struct supervisor *supervisor)
{
    struct context *context;

    if (!supervisor)
        return NULL;
    context = &supervisor->context;
    event_unsubscribe(&supervisor->on_event);
    control_free(supervisor->control);
    free_groups(supervisor);
    if (context->loop) {
        timer_disarm(loop_timers(context->loop), &supervisor->status_timer);
        timer_disarm(loop_timers(context->loop), &supervisor->stop_timer);
        loop_undefer(&supervisor->review);
        if (context->starts.loop) {
            pacer_deinit(&context->starts);
            pacer_deinit(&context->burials);
        }
        job_table_deinit(&context->jobs);
        event_bus_deinit(&context->events);
        dead_letters_deinit(&context->dead_letters);
        death_log_deinit(&context->deaths);
    }
    signals_deinit(&supervisor->signals);
    notify_deinit(&supervisor->notify);
    if (context->loop)
        alarms_deinit(&context->alarms);
    loop_free(context->loop);
    cgroup_tree_deinit(&supervisor->cgroups);
    config_free(supervisor->config);
    journal_deinit(&supervisor->journal);
    free(supervisor->runtime_directory);
    free(supervisor);
    return NULL;
}
