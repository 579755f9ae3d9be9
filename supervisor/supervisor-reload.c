/* SPDX-License-Identifier: MIT */

/* Reads the configuration again, and applies it. */

#include "shared/base/cleanup.h"
#include "supervisor/config/check/resolve.h"
#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-load.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/control/control.h"
#include "supervisor/supervisor-private.h"
#include <errno.h>
#include <string.h>

static bool is_of_daemon(const struct config_problem *problem, const char *directory)
{
    return config_problem_is_of(problem, directory, "troupe", ".conf");
}

static bool is_of_schedule(const struct config_problem *problem)
{
    return config_ends_with(problem->path, CONFIG_SCHEDULE_SUFFIX);
}

/* Faults of groups are events of their own. */
static void log_faults(const char *directory, const struct config_problems *faults)
{
    for (size_t i = 0; i < faults->n_problems; i++)
        if (is_of_daemon(&faults->problems[i], directory) || is_of_schedule(&faults->problems[i]))
            log_error("%s:%u: %s", faults->problems[i].path, faults->problems[i].line,
                      faults->problems[i].text);
}

/* ---- at a start ---- */

/* Returns 0 with the group's previous configuration, or with NULL if it was not kept; or -errno. */
static int recall_group(const struct held_table *table, const char *name, const char *path,
                        struct config_group **ret)
{
    const struct held *held = held_find(table, HOLDING_CONFIG, name);
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = held ? held_read_text(held, &text, &size) : 0;

    *ret = NULL;
    return r < 0 || !held ? r : config_recall_group(name, path, text, size, ret);
}

/* If the files of a group have a mistake, or describe another kind of group than the one that runs,
 * replaces it by its previous configuration, if that was kept. Returns 0 or -errno. */
static int recall(const struct process_context *process, struct config *config)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < config->n_groups; i++) {
        struct config_group *group = config->groups[i], *before = NULL;

        if (group->unread || held_has_group(&process->held, group->name))
            r = recall_group(&process->held, group->name, group->path, &before);
        if (!before)
            continue;
        config_refuse_other_kind(before, group);
        if (group->unread) {
            before->next = group;
            config->groups[i] = before;
        } else {
            config_group_free(before);
        }
    }
    return r;
}

static int recall_missing_group(struct supervisor *supervisor, struct config *config,
                                const char *name)
{
    _cleanup_free_ char *path =
        path_join(supervisor->options->config_directory, name, CONFIG_GROUP_SUFFIX);
    struct config_group *group = NULL;
    int r = path ? recall_group(&supervisor->parts.process.held, name, path, &group) : -ENOMEM;

    if (!group)
        return r;
    group->missing = true;
    r = config_add_group(config, group);
    if (r < 0)
        config_group_free(group);
    return r;
}

/* Adds the groups that no file describes any more: they are taken over, and then removed. Returns 0
 * or -errno. */
static int recall_missing(struct supervisor *supervisor, struct config *config)
{
    const struct held *held = NULL;
    int r = 0;

    while (r == 0 && (held = held_next(&supervisor->parts.process.held, HOLDING_CONFIG, held)))
        if (!config_find_group(config, held->name))
            r = recall_missing_group(supervisor, config, held->name);
    return r;
}

/* Returns whether the problem concerns only a schedule or a limit, or a group that can wait: it has
 * a previous configuration, or no worker that would end. */
static bool is_kept_back(const struct supervisor *supervisor, const struct config *config,
                         const struct config_problem *problem)
{
    const struct config_group *group =
        config_group_of_problem(config, supervisor->options->config_directory, problem);

    if (config_ends_with(problem->path, CONFIG_SCHEDULE_SUFFIX) ||
        config_ends_with(problem->path, CONFIG_LIMIT_SUFFIX))
        return true;
    return group && (group->next || !held_has_group(&supervisor->parts.process.held, group->name));
}

/* Returns the first problem that keeps all groups from starting, or NULL. At a first start no
 * worker could end, so only troupe.conf counts. */
static const struct config_problem *find_obstacle(const struct supervisor *supervisor,
                                                  const struct config *config,
                                                  const struct config_problems *problems)
{
    const bool first = supervisor->parts.control.predecessors.first;

    for (size_t i = 0; i < problems->n_problems; i++) {
        const struct config_problem *problem = &problems->problems[i];

        if (first ? is_of_daemon(problem, supervisor->options->config_directory)
                  : !is_kept_back(supervisor, config, problem))
            return problem;
    }
    return NULL;
}

/* Notes the mistakes that keep back a schedule or an exchange. Returns 0 or -ENOMEM. */
static int add_kept_back(struct supervisor *supervisor, const struct config *config,
                         const struct config_problems *problems)
{
    const char *directory = supervisor->options->config_directory;
    char text[CONFIG_PROBLEM_MAX];
    int r = 0;

    for (size_t i = 0; r == 0 && i < problems->n_problems; i++) {
        const struct config_problem *problem = &problems->problems[i];

        if (config_group_of_problem(config, directory, problem) || is_of_daemon(problem, directory))
            continue;
        config_problem_print(text, sizeof(text), problem);
        r = strv_append(&supervisor->parts.control.kept_back, text);
    }
    return r;
}

int supervisor_admit_config(struct supervisor *supervisor, struct config *config,
                            struct config_problems *problems, bool allow_empty)
{
    const struct config_problem *obstacle;
    int r = recall(&supervisor->parts.process, config);

    if (r == 0 && !allow_empty)
        r = reload_check_held(&supervisor->parts, supervisor->options->config_directory, config,
                              problems);
    if (r < 0)
        return r;
    obstacle = find_obstacle(supervisor, config, problems);
    if (!obstacle) {
        supervisor->parts.control.kept_back = strv_free(supervisor->parts.control.kept_back);
        r = add_kept_back(supervisor, config, problems);
        return r < 0 ? r : recall_missing(supervisor, config);
    }
    config_problem_print(supervisor->config_problem, CONFIG_PROBLEM_MAX, obstacle);
    supervisor->parts.control.config_problem = supervisor->config_problem;
    return CONFIG_E_INVALID;
}

static int resolve(struct supervisor *supervisor)
{
    struct config_problems faults = CONFIG_PROBLEMS_NULL;
    struct names names = NAMES_NULL;
    int r = config_want_names(supervisor->config, &names);

    if (r == 0)
        r = names_wait(&names);
    if (r < 0 && r != -ENOMEM) {
        log_warning("users, groups and files cannot be looked up: %s", strerror(-r));
        r = 0;
    }
    if (r == 0)
        r = config_resolve(supervisor->config, &names, &faults);
    log_faults(supervisor->options->config_directory, &faults);
    if (r == CONFIG_E_INVALID) {
        config_remove_broken(supervisor->config, CONFIG_SCHEDULE);
        r = add_kept_back(supervisor, supervisor->config, &faults);
    }
    config_problems_deinit(&faults);
    names_deinit(&names);
    return r;
}

static void take_daemon(struct supervisor *supervisor)
{
    supervisor->parts.control.config = &supervisor->config->daemon;
    if (!supervisor->options->log_level_given)
        log_set_max_level((enum log_level)supervisor->config->daemon.log_level);
}

void supervisor_apply_daemon(struct supervisor *supervisor)
{
    struct parts *parts = &supervisor->parts;

    take_daemon(supervisor);
    death_log_resize(&parts->deaths, parts->control.config->deaths_max);
    dead_letters_resize(&parts->messages.dead_letters, parts->control.config->dead_letters_max,
                        parts->control.config->dead_letters_memory_max);
    loop_set_spin(parts->loop, parts->control.config->spin);
    if (supervisor->control)
        control_review_clients(supervisor->control);
}

int supervisor_load_config(struct supervisor *supervisor)
{
    const char *directory = supervisor->options->config_directory;
    int r = config_read(&supervisor->config, directory, &supervisor->problems);

    reload_log_problems(&supervisor->problems);
    if (r < 0) {
        log_error("%s: cannot read the configuration: %s", directory, strerror(-r));
        supervisor->config_error = r;
        r = config_empty(&supervisor->config);
    }
    if (r >= 0)
        take_daemon(supervisor);
    return r < 0 ? r : 0;
}

int supervisor_settle_config(struct supervisor *supervisor)
{
    const size_t n = supervisor->problems.n_problems;
    int r;

    if (supervisor->config_error < 0) {
        supervisor_note_error(supervisor, supervisor->config_error);
        return 0;
    }
    r = supervisor_admit_config(supervisor, supervisor->config, &supervisor->problems, false);
    if (r == CONFIG_E_INVALID) {
        if (n == 0)
            reload_log_problems(&supervisor->problems);
        config_free(TAKE_PTR(supervisor->config));
        r = config_empty(&supervisor->config);
    } else if (r == 0) {
        r = resolve(supervisor);
    }
    config_problems_deinit(&supervisor->problems);
    if (r == 0)
        supervisor_apply_daemon(supervisor);
    else
        log_error("%s: cannot read the configuration: %s", supervisor->options->config_directory,
                  strerror(-r));
    return r;
}

static struct reload_call *first_call(const struct supervisor *supervisor)
{
    return list_first_entry(&supervisor->reloads, struct reload_call, link);
}

static void log_outcome(const struct supervisor *supervisor, const struct reload_call *call)
{
    const char *directory = supervisor->options->config_directory;
    size_t n = call->problems.n_problems;

    log_faults(directory, &call->faults);
    if (call->log)
        reload_log_problems(&call->problems);
    else if (n > 0)
        log_error("%s: %zu problem%s, reported to the client that asked for the reload%s",
                  directory, n, n == 1 ? "" : "s",
                  call->result == 0 ? "" : "; nothing has changed");
    if (call->result < 0)
        log_error("%s: cannot read the configuration: %s", directory, strerror(-call->result));
}

/* Ends the call that runs, unless it waits. */
static void finish(struct supervisor *supervisor, int r)
{
    struct parts *parts = &supervisor->parts;
    struct reload_call *call = first_call(supervisor);

    if (supervisor->awaits_closed)
        return;
    lookup_deinit(&supervisor->lookup);
    supervisor->loaded = config_free(supervisor->loaded);
    parts->control.state = supervisor->ready ? CONTROL_RUNNING : CONTROL_STARTING;
    notify_tell(&supervisor->notify, SERVICE_READY, loop_now(parts->loop));
    list_unlink(&call->link);
    call->result = r;
    if (r == 0)
        call->left_safe_mode = supervisor_leave_safe_mode(supervisor);
    log_outcome(supervisor, call);
    if (!list_empty(&supervisor->reloads))
        loop_defer(parts->loop, &supervisor->reload);
    supervisor_resume_upgrade(supervisor);
    if (call->done)
        call->done(call);
}

static int apply_resolved(struct supervisor *supervisor)
{
    struct parts *parts = &supervisor->parts;
    struct reload_call *call = first_call(supervisor);
    int r;

    supervisor->awaits_closed = reload_must_wait(parts, supervisor->loaded);
    if (supervisor->awaits_closed)
        return 0;
    parts->control.kept_back = strv_free(parts->control.kept_back);
    r = reload_apply(parts, &supervisor->config, TAKE_PTR(supervisor->loaded), &call->changes);
    supervisor_apply_daemon(supervisor);
    supervisor_open_store(supervisor);
    supervisor_open_history(supervisor);
    plans_review(&parts->plans);
    return r;
}

static int apply(struct supervisor *supervisor)
{
    struct parts *parts = &supervisor->parts;
    struct reload_call *call = first_call(supervisor);
    int r = config_resolve(supervisor->loaded, &supervisor->lookup.names, &call->faults);

    if (r == CONFIG_E_INVALID && config_problems_move(&call->problems, &call->faults) < 0)
        r = -ENOMEM;
    if (r != 0)
        return r;
    if (parts->control.config_problem) {
        supervisor_start_late(supervisor, TAKE_PTR(supervisor->loaded), call);
        return 0;
    }
    return apply_resolved(supervisor);
}

static void on_lookup_done(struct lookup *lookup)
{
    struct supervisor *supervisor = supervisor_of(lookup, lookup);

    finish(supervisor, apply(supervisor));
}

/* A closed group must not come back before its jobs have been ended. */
static bool may_begin(const struct parts *parts)
{
    const struct control_context *control = &parts->control;

    return list_empty(&parts->registry.closings.groups) &&
           (control->state == CONTROL_RUNNING ||
            (control->state == CONTROL_STARTING && control->config_problem));
}

/* Reads the configuration like at a start. Returns like reload_read(). */
static int read_late(struct supervisor *supervisor, struct reload_call *call)
{
    int r =
        config_read(&supervisor->loaded, supervisor->options->config_directory, &call->problems);

    return r < 0 ? r
                 : supervisor_admit_config(supervisor, supervisor->loaded, &call->problems,
                                           call->allow_empty);
}

static void begin(struct loop_deferred *deferred)
{
    struct supervisor *supervisor = supervisor_of(deferred, reload);
    struct parts *parts = &supervisor->parts;
    struct reload_call *call = first_call(supervisor);
    int r;

    if (!call || !may_begin(parts))
        return;
    supervisor_review_socket(supervisor);
    notify_tell(&supervisor->notify, SERVICE_RELOADING, loop_now(parts->loop));
    parts->control.state = CONTROL_RELOADING;
    lookup_init(&supervisor->lookup, parts->loop, on_lookup_done);
    r = parts->control.config_problem
            ? read_late(supervisor, call)
            : reload_read(parts, supervisor->options->config_directory, call, &supervisor->loaded);
    if (r != 0) {
        finish(supervisor, r);
        return;
    }
    r = config_want_names(supervisor->loaded, &supervisor->lookup.names);
    if (r == 0)
        r = lookup_start(&supervisor->lookup);
    if (r < 0)
        finish(supervisor, r);
    else if (r == LOOKUP_E_DONE)
        finish(supervisor, apply(supervisor));
}

static void supervisor_reload(void *userdata, struct reload_call *call)
{
    struct supervisor *supervisor = userdata;

    list_push_back(&supervisor->reloads, &call->link);
    if (may_begin(&supervisor->parts))
        begin(&supervisor->reload);
}

void supervisor_resume_reload(struct supervisor *supervisor)
{
    if (!list_empty(&supervisor->reloads))
        loop_defer(loop_of(supervisor), &supervisor->reload);
}

static void hang_up_done(struct reload_call *call)
{
    struct supervisor *supervisor = supervisor_of(call, hangup);
    bool again = supervisor->hangup_again;

    supervisor->hangup_again = false;
    reload_call_deinit(call);
    if (again)
        supervisor_hang_up(supervisor);
}

void supervisor_hang_up(struct supervisor *supervisor)
{
    struct reload_call *call = &supervisor->hangup;

    if (list_linked(&call->link)) {
        supervisor->hangup_again = call == first_call(supervisor);
        return;
    }
    reload_call_init(call, hang_up_done);
    call->log = true;
    supervisor_reload(supervisor, call);
}

static const char *want_store(void *userdata)
{
    struct supervisor *supervisor = userdata;

    if (!supervisor_has_state_directory(supervisor->parts.control.config))
        return "it would not survive: there is no StateDirectory= in troupe.conf(5)";
    supervisor->parts.limits.wanted = true;
    supervisor_open_store(supervisor);
    return supervisor->parts.durable.store ? NULL : "the store cannot be opened";
}

/* A reload, or a stop, may wait for that. */
static void on_closed(struct group_closings *closings)
{
    struct supervisor *supervisor = supervisor_of(closings, parts.registry.closings);

    if (supervisor->awaits_closed)
        finish(supervisor, apply_resolved(supervisor));
    else
        supervisor_resume_reload(supervisor);
    loop_defer(loop_of(supervisor), &supervisor->review);
}

/* The state of groups may have changed without an event. */
static void on_visited(struct group_walks *walks)
{
    struct supervisor *supervisor = supervisor_of(walks, parts.registry.walks);

    loop_defer(loop_of(supervisor), &supervisor->review);
}

void supervisor_init_reload(struct supervisor *supervisor)
{
    supervisor->parts.registry.walks.done = on_visited;
    supervisor->parts.registry.closings.done = on_closed;
    supervisor->parts.control.reload = supervisor_reload;
    supervisor->parts.control.want_store = want_store;
    supervisor->parts.control.userdata = supervisor;
    list_init(&supervisor->reloads);
    loop_deferred_init(&supervisor->reload, begin);
    reload_call_init(&supervisor->hangup, NULL);
}

void supervisor_end_reload(struct supervisor *supervisor)
{
    struct reload_call *call;

    lookup_deinit(&supervisor->lookup);
    supervisor->loaded = config_free(supervisor->loaded);
    loop_undefer(&supervisor->reload);
    supervisor->hangup_again = supervisor->awaits_closed = false;
    while ((call = first_call(supervisor))) {
        list_unlink(&call->link);
        call->result = -ESHUTDOWN;
        if (call->done)
            call->done(call);
    }
}
