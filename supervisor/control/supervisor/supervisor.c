/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: GetInfo, start, stop, resize, reload and other changes. */

#include "shared/base/log.h"
#include "supervisor/config/config.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/control.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/payload.h"
#include "supervisor/control/reload-call.h"
#include "supervisor/control/report.h"
#include "supervisor/control/supervisor/wait.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group.h"
#include "supervisor/pool/slot/slot.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct target_parameters {
    const char *target;
    bool wait;
    struct varlink_int size, within;
};

static const struct varlink_parameter only_target[] = {
    {"target", VARLINK_STRING, true, offsetof(struct target_parameters, target)},
    {0},
};
static const struct varlink_parameter target_and_wait[] = {
    {"target", VARLINK_STRING, true, offsetof(struct target_parameters, target)},
    {"wait", VARLINK_BOOL, false, offsetof(struct target_parameters, wait)},
    {0},
};
static const struct varlink_parameter target_wait_and_within[] = {
    {"target", VARLINK_STRING, true, offsetof(struct target_parameters, target)},
    {"wait", VARLINK_BOOL, false, offsetof(struct target_parameters, wait)},
    {"within_usec", VARLINK_INT, false, offsetof(struct target_parameters, within)},
    {0},
};
static const struct varlink_parameter target_size_and_wait[] = {
    {"target", VARLINK_STRING, true, offsetof(struct target_parameters, target)},
    {"size", VARLINK_INT, true, offsetof(struct target_parameters, size)},
    {"wait", VARLINK_BOOL, false, offsetof(struct target_parameters, wait)},
    {0},
};

/* Logs which client asked for a change: the events that follow do not say. */
static void log_change(const struct request *request, const char *target)
{
    const struct peer *peer = &request->connection->peer;

    log_info("%s%s%s asked for by process %d, uid %u", request->method->name, *target ? " " : "",
             target, (int)peer->pid, (unsigned)peer->uid);
}

/* ---- info ---- */

static const char *const STATES[] = {
    [CONTROL_STARTING] = "starting",
    [CONTROL_RUNNING] = "running",
    [CONTROL_RELOADING] = "reloading",
    [CONTROL_STOPPING] = "stopping",
};

static void get_info(struct request *request)
{
    static const struct varlink_parameter table[] = {{0}};
    const struct control_context *context = request->context;
    const struct loop_turns turns = loop_turns(context->loop);
    struct reply *reply;
    struct group *group;
    uint64_t n_jobs = 0;
    size_t cursor = 0;

    if (!request_take(request, table, NULL))
        return;
    while ((group = registry_next(context->registry, &cursor)))
        n_jobs += group->counts.n[JOBS_LIVE];
    reply = request_begin(request);
    reply_string(reply, "version", TROUPE_VERSION);
    reply_int(reply, "pid", context->keeper > 0 ? context->keeper : getpid());
    reply_int(reply, "supervisor_pid", getpid());
    reply_string(reply, "state", STATES[context->state]);
    reply_uint(reply, "started_at", context->started_at);
    reply_string(reply, "wake",
                 loop_wake_backend(context->loop) == WAKE_FUTEX ? "futex" : "eventfd");
    report_cgroups(reply, context);
    reply_uint(reply, "groups", context->registry->n_groups);
    reply_uint(reply, "workers", context->registry->census.n[CENSUS_MEMBER]);
    reply_uint(reply, "clients", control_n_clients(request->control));
    reply_uint(reply, "jobs", n_jobs);
    reply_uint(reply, "longest_turn_usec", turns.longest);
    reply_uint(reply, "recent_turn_usec", turns.recent);
    request_end(request);
}

/* ---- life ---- */

struct life_change {
    void (*group)(struct group *group);
    void (*cell)(struct cell *cell);
    void (*slot)(struct slot *slot);
    enum control_goal goal;
    bool begins; /* refused while the supervisor stops */
    bool ends;   /* takes within_usec */
};

static void stop_group(struct group *group)
{
    group_stop(group, false);
}

static void stop_cell(struct cell *cell)
{
    pool_stop(&cell->pool, false);
}

static void stop_slot(struct slot *slot)
{
    slot_stop(slot, false);
}

static void stop_within(const struct registry_target *target, usec_t time)
{
    struct slot *slot;

    if (target->slot) {
        slot_stop_within(target->slot, time);
        return;
    }
    group_each_cell (cell, target->group)
        for (size_t i = 0;
             (!target->cell || target->cell == cell) && (slot = pool_next_slot(&cell->pool, &i));)
            slot_stop_within(slot, time);
}

static void change_life(struct request *request, const struct life_change *change)
{
    struct target_parameters parameters = {0};
    struct registry_target target;

    if (!request_take(request, change->ends ? target_wait_and_within : target_and_wait,
                      &parameters) ||
        (change->begins && control_refuse_stopping(request)) ||
        !control_find_target(request, parameters.target, &target))
        return;
    if (parameters.within.set && parameters.within.value < 1) {
        control_refuse_option(request, "within_usec", "microseconds, 1 or more");
        return;
    }
    log_change(request, parameters.target);
    if (target.slot)
        change->slot(target.slot);
    else if (target.cell)
        change->cell(target.cell);
    else
        change->group(target.group);
    if (change->begins)
        group_fault_retry(target.group);
    if (parameters.within.set)
        stop_within(&target, (usec_t)parameters.within.value);
    if (parameters.wait && !request_is_oneway(request))
        control_wait(request, &(struct control_wait_options){.goal = change->goal,
                                                             .target = parameters.target});
    else
        request_done(request);
}

static void start(struct request *request)
{
    static const struct life_change change = {group_start,     cell_start, slot_start,
                                              CONTROL_GOAL_UP, true,       false};

    change_life(request, &change);
}

static void stop(struct request *request)
{
    static const struct life_change change = {stop_group,        stop_cell, stop_slot,
                                              CONTROL_GOAL_DOWN, false,     true};

    change_life(request, &change);
}

static void restart(struct request *request)
{
    static const struct life_change change = {group_restart,   cell_restart, slot_restart,
                                              CONTROL_GOAL_UP, true,         false};

    change_life(request, &change);
}

static void reset(struct request *request)
{
    struct target_parameters parameters = {0};
    struct registry_target target;

    if (!request_take(request, only_target, &parameters) || control_refuse_stopping(request) ||
        !control_find_target(request, parameters.target, &target))
        return;
    log_change(request, parameters.target);
    if (target.slot)
        slot_reset(target.slot);
    else if (target.cell)
        cell_reset(target.cell);
    else
        group_reset(target.group);
    group_fault_retry(target.group);
    request_done(request);
}

/* Takes a target that has a queue. */
static bool take_queue(struct request *request, struct target_parameters *parameters,
                       struct registry_target *ret)
{
    if (!request_take(request, only_target, parameters) || control_refuse_stopping(request) ||
        !control_find_pool(request, parameters->target, ret))
        return false;
    if (ret->group->config->type == CONFIG_ACTOR) {
        log_change(request, parameters->target);
        return true;
    }
    request_fail_string(request, "NotAnActor", "group", ret->group->name);
    return false;
}

static void pause_target(struct request *request)
{
    struct target_parameters parameters = {0};
    struct registry_target target;
    int r = 0;

    if (!take_queue(request, &parameters, &target))
        return;
    if (target.cell)
        r = group_pause_cell(target.cell);
    else
        group_pause(target.group);
    if (r < 0)
        request_internal(request, r);
    else
        request_done(request);
}

static void resume_target(struct request *request)
{
    struct target_parameters parameters = {0};
    struct registry_target target;

    if (!take_queue(request, &parameters, &target))
        return;
    if (target.cell)
        group_resume_cell(target.cell);
    else
        group_resume(target.group);
    request_done(request);
}

static void fail_size(struct request *request, int64_t size)
{
    struct reply *reply = request_begin_error(request, "BadSize");

    reply_int(reply, "size", size);
    reply_int(reply, "minimum", 1);
    reply_int(reply, "maximum", GROUP_SIZE_MAX);
    request_end(request);
}

static void resize(struct request *request)
{
    struct target_parameters parameters = {0};
    struct registry_target target;
    size_t old_size;
    int r;

    if (!request_take(request, target_size_and_wait, &parameters) ||
        control_refuse_stopping(request))
        return;
    if (!control_find_pool(request, parameters.target, &target))
        return;
    old_size = target.cell ? target.cell->pool.size : target.group->size;
    r = target.cell ? group_resize_cell(target.cell, parameters.size.value)
                    : group_resize(target.group, parameters.size.value);
    if (r == 0)
        log_change(request, parameters.target);
    if (r == GROUP_E_BAD_SIZE) {
        fail_size(request, parameters.size.value);
    } else if (r < 0) {
        request_internal(request, r);
    } else if (parameters.wait && !request_is_oneway(request)) {
        control_wait(request,
                     &(struct control_wait_options){.goal = CONTROL_GOAL_SIZE,
                                                    .target = parameters.target,
                                                    .old_size = old_size,
                                                    .new_size = (size_t)parameters.size.value});
    } else {
        reply_uint(request_begin(request), "old_size", old_size);
        request_end(request);
    }
}

/* ---- reload ---- */

static void report_problems(struct reply *reply, const char *key,
                            const struct config_problems *problems)
{
    reply_array(reply, key);
    for (size_t i = 0; i < problems->n_problems; i++) {
        const struct config_problem *problem = &problems->problems[i];
        char line[1024 + PATH_MAX];

        if (problem->line > 0)
            snprintf(line, sizeof(line), "%s:%u: %s", problem->path, problem->line, problem->text);
        else
            snprintf(line, sizeof(line), "%s: %s", problem->path, problem->text);
        reply_string(reply, NULL, line);
    }
    reply_end_array(reply);
}

static void fail_configuration(struct request *request, const struct config_problems *problems)
{
    report_problems(request_begin_error(request, "BadConfiguration"), "problems", problems);
    request_end(request);
}

static void report_names(struct reply *reply, const char *key, const config_strv names)
{
    reply_array(reply, key);
    for (size_t i = 0; names && names[i]; i++)
        reply_string(reply, NULL, names[i]);
    reply_end_array(reply);
}

static void answer_reload(struct request *request, const struct reload_call *call)
{
    struct reply *reply;

    if (call->result == CONFIG_E_INVALID) {
        fail_configuration(request, &call->problems);
    } else if (call->result == -ESHUTDOWN) {
        request_fail(request, "Stopping");
    } else if (call->result < 0) {
        request_internal(request, call->result);
    } else {
        reply = request_begin(request);
        report_names(reply, "added", call->changes.added);
        report_names(reply, "removed", call->changes.removed);
        report_names(reply, "changed", call->changes.changed);
        if (call->faults.n_problems > 0)
            report_problems(reply, "faults", &call->faults);
        if (call->problems.n_problems > 0)
            report_problems(reply, "left_out", &call->problems);
        request_end(request);
    }
}

struct asked_reload {
    struct reload_call call;
    struct request *request; /* NULL = the client is gone */
};

static void on_reloaded(struct reload_call *call)
{
    struct asked_reload *reload = list_entry(call, struct asked_reload, call);
    struct request *request = reload->request;

    if (request) {
        request->drop = NULL;
        answer_reload(request, call);
    }
    reload_call_deinit(call);
    free(reload);
}

/* The reload goes on without the client. */
static void drop_reload(struct request *request)
{
    struct asked_reload *reload = request->state;

    reload->request = NULL;
}

struct reload_parameters {
    bool partial, allow_empty;
};

static void reload_all(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"partial", VARLINK_BOOL, false, offsetof(struct reload_parameters, partial)},
        {"allow_empty", VARLINK_BOOL, false, offsetof(struct reload_parameters, allow_empty)},
        {0},
    };
    struct reload_parameters parameters = {0};
    struct asked_reload *reload;

    if (!request_take(request, table, &parameters) || control_refuse_stopping(request))
        return;
    reload = calloc(1, sizeof(*reload));
    if (!reload) {
        request_internal(request, -ENOMEM);
        return;
    }
    log_change(request, "");
    reload_call_init(&reload->call, on_reloaded);
    reload->call.partial = parameters.partial;
    reload->call.allow_empty = parameters.allow_empty;
    reload->request = request;
    request->state = reload;
    request->drop = drop_reload;
    request->context->reload(request->context->userdata, &reload->call);
}

const struct request_method control_supervisor_methods[] = {
    {"GetInfo", get_info, false},
    {"GetStatus", control_get_status, false},
    {"Watch", control_watch, false},
    {"ListDeaths", control_list_deaths, false},
    {"GetLog", control_get_log, false},
    {"Start", start, true},
    {"Stop", stop, true},
    {"Restart", restart, true},
    {"Reset", reset, true},
    {"Pause", pause_target, true},
    {"Resume", resume_target, true},
    {"Resize", resize, true},
    {"Reload", reload_all, true},
    {0},
};
