/* SPDX-License-Identifier: MIT */

/* Opens the store of durable jobs once a group or a schedule needs it, and reports its state. */

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/event/event-id.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/group/order.h"
#include "supervisor/history/history.h"
#include "supervisor/store/removal.h"
#include "supervisor/supervisor-private.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STORE_FILE "troupe.db"
/* How long a stop waits for changes to be written once all workers have stopped. Changes that are
 * not written by then are lost. */
#define WRITE_TIMEOUT (10 * USEC_PER_SEC)
/* For how long an upgrade may stop the loop. */
#define SETTLE_TIMEOUT (5 * USEC_PER_SEC)
/* How long readiness waits for the store, which may be locked, or on a disk that hangs: groups
 * without durable jobs do not need it. */
#define OPENING_TIMEOUT (5 * USEC_PER_SEC)

/* The configured directory, or the first that the service manager passes. Returns NULL when out of
 * memory. */
static char *state_directory(const struct config_daemon *config)
{
    const char *directory = config->state_directory;

    if (!directory)
        directory = getenv("STATE_DIRECTORY");
    if (!directory || *directory != '/')
        directory = CONFIG_STATE_DIRECTORY;
    return strndup(directory,
                   config->state_directory ? strlen(directory) : strcspn(directory, ":"));
}

char *supervisor_state_file(const struct config_daemon *config, const char *name)
{
    _cleanup_free_ char *directory = state_directory(config);

    return directory ? path_join(directory, name, "") : NULL;
}

char *supervisor_store_path(const struct config_daemon *config)
{
    return supervisor_state_file(config, STORE_FILE);
}

bool supervisor_has_state_directory(const struct config_daemon *config)
{
    return config->state_directory || getenv("STATE_DIRECTORY");
}

/* Whether there may be jobs of groups that no file describes any more. The default directory may be
 * that of another supervisor. */
static bool is_left(const struct config_daemon *config)
{
    _cleanup_free_ char *path = NULL;

    if (!supervisor_has_state_directory(config))
        return false;
    path = supervisor_store_path(config);
    return path && access(path, F_OK) == 0;
}

static bool is_needed(const struct supervisor *supervisor)
{
    const struct registry *registry = &supervisor->parts.registry;

    if (supervisor->parts.plans.n_plans > 0 || supervisor->parts.limits.wanted)
        return true;
    for (size_t i = 0; i < registry->n_groups; i++)
        if (registry->sorted[i]->config->durable ||
            registry->sorted[i]->limits.known != LIMITS_KNOWN)
            return true;
    return !supervisor->ready && is_left(supervisor->parts.control.config);
}

void supervisor_await_limits(struct supervisor *supervisor)
{
    struct limit_table *limits = &supervisor->parts.limits;

    limits->awaited = !limits->settings.read && is_left(supervisor->parts.control.config);
}

/* Lets senders of durable jobs try again that have waited for the store to be opened. */
static void call_senders(const struct registry *registry)
{
    registry_each_group (group, registry)
        if (group->config->durable)
            group_call_senders(group);
}

/* Whether the store works, though it may be too full for additions. */
static bool is_working(enum store_state state)
{
    return state == STORE_OPEN || state == STORE_FULL;
}

static void know_limits(const struct parts *parts, bool read)
{
    registry_each_group (group, &parts->registry) {
        group_know_limits(group, read);
        group_review_stop(group);
    }
}

static void on_limits_known(struct settings *settings)
{
    struct parts *parts = list_entry(settings, struct parts, limits.settings);

    if (!settings->read)
        return;
    parts->limits.awaited = false;
    limit_table_apply(&parts->limits, NULL);
    know_limits(parts, true);
    order_start(&parts->registry);
}

/* Lets groups begin that wait for the limits of earlier runs, unless it is known that they have
 * some. */
static void give_up_limits(struct parts *parts)
{
    if (!parts->limits.awaited)
        return;
    parts->limits.awaited = false;
    know_limits(parts, false);
}

static void on_changed(void *userdata, enum store_state state)
{
    struct supervisor *supervisor = userdata;
    const char *problem = store_problem(supervisor->parts.durable.store);

    if (is_working(state)) {
        settings_read(&supervisor->parts.stops, supervisor->parts.durable.store, NULL);
        settings_read(&supervisor->parts.limits.settings, supervisor->parts.durable.store,
                      on_limits_known);
        restore_begin(&supervisor->restore);
    } else {
        give_up_limits(&supervisor->parts);
        order_start(&supervisor->parts.registry);
    }
    if (state == STORE_FAILED)
        durable_jobs_refuse(&supervisor->parts.durable);
    if (state == STORE_OPEN)
        event_emit(&supervisor->parts.events, (struct event){.level = LOG_LEVEL_NOTICE,
                                                             .type = "store.open",
                                                             .message = "the store of durable jobs "
                                                                        "is open"});
    else
        event_emit(&supervisor->parts.events,
                   (struct event){.level = LOG_LEVEL_ERROR,
                                  .type = state == STORE_FULL ? "store.full" : "store.failed",
                                  .message_id = EVENT_ID_STORE,
                                  .message = problem});
    call_senders(&supervisor->parts.registry);
    plans_review(&supervisor->parts.plans);
    supervisor_resume_upgrade(supervisor);
    loop_defer(loop_of(supervisor), &supervisor->review);
}

/* A stop may wait for it. */
static void on_restored(struct restore *restore)
{
    struct supervisor *supervisor = supervisor_of(restore, restore);

    plans_review(&supervisor->parts.plans);
    supervisor_resume_upgrade(supervisor);
    loop_defer(loop_of(supervisor), &supervisor->review);
}

bool supervisor_store_is_restoring(const struct supervisor *supervisor)
{
    const struct durable_jobs *durable = &supervisor->parts.durable;

    return durable->restores && is_working(store_state(durable->store));
}

/* A stop waits until all is written. */
static void on_idle(struct durable_jobs *jobs)
{
    struct supervisor *supervisor = supervisor_of(jobs, parts.durable);

    if (supervisor->parts.control.state == CONTROL_STOPPING)
        loop_defer(loop_of(supervisor), &supervisor->review);
}

/* The end of a job in hand is written once its row has been read. */
static bool is_writing(const struct supervisor *supervisor)
{
    const struct durable_jobs *durable = &supervisor->parts.durable;
    const bool reads_first = durable->restores && !list_empty(&durable->unread);

    return (durable->n_busy > 0 || reads_first) && is_working(store_state(durable->store));
}

static void on_letter_dropped(void *userdata, int64_t row)
{
    const struct durable_jobs *jobs = userdata;

    removal_add(jobs->store, row, 1u << ROWS_DEAD);
}

static int open_store(struct supervisor *supervisor)
{
    _cleanup_free_ char *path = supervisor_store_path(supervisor->parts.control.config);
    const struct store_options options = {
        .path = path,
        .opened = supervisor->parts.durable.opened,
        .changed = on_changed,
        .settled = supervisor_on_settled,
        .userdata = supervisor,
    };

    if (!path)
        return -ENOMEM;
    return store_new(&supervisor->parts.durable.store, loop_of(supervisor), &options);
}

void supervisor_open_store(struct supervisor *supervisor)
{
    struct parts *parts = &supervisor->parts;
    int r;

    if (parts->durable.store && is_working(store_state(parts->durable.store)))
        restore_begin(&supervisor->restore); /* of groups that are new */
    if (parts->durable.store || !is_needed(supervisor))
        return;
    parts->durable.idle = on_idle;
    parts->messages.dead_letters.drop_row = on_letter_dropped;
    parts->messages.dead_letters.userdata = &parts->durable;
    restore_init(&supervisor->restore, &parts->groups);
    supervisor->restore.done = on_restored;
    parts->durable.letters_unread = true;
    r = open_store(supervisor);
    parts->durable.incomplete = r < 0;
    if (r < 0) {
        log_error("cannot start the store of durable jobs: %s", strerror(-r));
        give_up_limits(parts);
        return;
    }
    timer_arm(loop_timers(parts->loop), &supervisor->opening_timer,
              usec_add(loop_now(parts->loop), OPENING_TIMEOUT));
}

void supervisor_scan_store(struct supervisor *supervisor)
{
    const struct store *store = supervisor->parts.durable.store;

    if (store && is_working(store_state(store)))
        restore_again(&supervisor->restore);
}

bool supervisor_store_is_opening(const struct supervisor *supervisor)
{
    const struct store *store = supervisor->parts.durable.store;

    return store && store_state(store) == STORE_OPENING;
}

bool supervisor_store_is_awaited(const struct supervisor *supervisor)
{
    return supervisor_store_is_opening(supervisor) && timer_armed(&supervisor->opening_timer);
}

void supervisor_on_opening_timeout(struct timer *timer, usec_t now)
{
    struct supervisor *supervisor = supervisor_of(timer, opening_timer);

    give_up_limits(&supervisor->parts);
    order_start(&supervisor->parts.registry);
    if (supervisor_store_is_opening(supervisor))
        log_warning("the store of durable jobs is still being opened; its groups accept no jobs "
                    "before that");
    loop_defer(loop_of(supervisor), &supervisor->review);
}

/* ---- the end ---- */

/* The loop runs while the stores write what waits. Only what is added once they rest is written
 * while it stands still. */

/* Returns both stores; NULL = there is none. */
static void stores_of(const struct supervisor *supervisor, struct store *ret[2])
{
    ret[0] = supervisor->parts.durable.store;
    ret[1] = history_store(supervisor->parts.control.history);
}

static bool all(const struct supervisor *supervisor, bool (*is)(const struct store *store))
{
    struct store *stores[2];

    stores_of(supervisor, stores);
    return (!stores[0] || is(stores[0])) && (!stores[1] || is(stores[1]));
}

void supervisor_on_settled(void *userdata)
{
    struct supervisor *supervisor = userdata;

    if (supervisor->parts.control.state == CONTROL_STOPPING)
        loop_defer(loop_of(supervisor), &supervisor->review);
    else if (supervisor->upgrade.approved)
        loop_defer(loop_of(supervisor), &supervisor->upgrade.stop);
}

bool supervisor_rest_stores(struct supervisor *supervisor)
{
    struct store *stores[2];

    stores_of(supervisor, stores);
    if (stores[0])
        store_rest(stores[0]);
    if (stores[1]) {
        history_hurry(supervisor->parts.control.history);
        store_rest(stores[1]);
    }
    return all(supervisor, store_rests);
}

const char *supervisor_stuck_store(const struct supervisor *supervisor)
{
    struct store *stores[2];

    stores_of(supervisor, stores);
    for (size_t i = 0; i < 2; i++)
        if (stores[i] && store_is_stuck(stores[i]))
            return store_problem(stores[i]);
    return NULL;
}

void supervisor_resume_stores(struct supervisor *supervisor)
{
    struct store *stores[2];

    stores_of(supervisor, stores);
    for (size_t i = 0; i < 2; i++)
        if (stores[i])
            store_resume(stores[i]);
}

/* Whether ends of jobs are still to be written: an end is written after its job has been added, and
 * that of a job in hand once the store is open. */
static bool is_awaited(const struct supervisor *supervisor)
{
    return supervisor->parts.durable.store &&
           (is_writing(supervisor) || supervisor_store_is_opening(supervisor));
}

bool supervisor_settle_store(struct supervisor *supervisor)
{
    const usec_t end = usec_add(clock_now(), SETTLE_TIMEOUT);
    usec_t left;

    while (is_awaited(supervisor) && !supervisor_stuck_store(supervisor) &&
           fault_inject("settle") == 0 && (left = clock_left(end)) > 0)
        store_work(supervisor->parts.durable.store, left);
    return !is_awaited(supervisor);
}

static void begin_end(struct supervisor *supervisor, enum store_end how)
{
    struct store *stores[2];

    stores_of(supervisor, stores);
    if (stores[0])
        store_end(stores[0], how);
    if (stores[1]) {
        history_hurry(supervisor->parts.control.history);
        store_end(stores[1], how == STORE_LEAVE ? STORE_LEAVE : STORE_END);
    }
}

bool supervisor_end_stores(struct supervisor *supervisor)
{
    struct loop *loop = loop_of(supervisor);

    if (supervisor->end_by == 0) {
        supervisor->end_by = usec_add(loop_now(loop), WRITE_TIMEOUT);
        timer_arm(loop_timers(loop), &supervisor->stop_timer, supervisor->end_by);
    }
    if (fault_inject("settle") < 0 || loop_now(loop) >= supervisor->end_by)
        return true;
    if (is_awaited(supervisor))
        return false;
    begin_end(supervisor, STORE_END_RUN);
    return all(supervisor, store_has_ended);
}

static void work(const struct supervisor *supervisor, usec_t timeout)
{
    struct store *stores[2];

    stores_of(supervisor, stores);
    store_work(stores[0] && !store_has_ended(stores[0]) ? stores[0] : stores[1], timeout);
}

void supervisor_close_stores(struct supervisor *supervisor)
{
    struct parts *parts = &supervisor->parts;
    const usec_t end = usec_add(clock_now(), SETTLE_TIMEOUT);
    usec_t left;

    begin_end(supervisor, supervisor->upgrade.approved ? STORE_LEAVE : STORE_END);
    while (parts->control.state != CONTROL_STOPPING && !all(supervisor, store_has_ended) &&
           (left = clock_left(end)) > 0)
        work(supervisor, left);
    if (!all(supervisor, store_has_ended))
        log_warning("what was not written yet is lost: " STORE_SLOW_TEXT);
    if (parts->durable.store && !store_has_ended(parts->durable.store))
        store_abandon(parts->durable.store);
    else
        parts->durable.store = store_free(parts->durable.store);
    durable_jobs_close(&parts->durable);
    supervisor_close_history(supervisor);
    if (!parts->durable.store)
        restore_deinit(&supervisor->restore);
}
