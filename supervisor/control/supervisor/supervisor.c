/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: GetInfo, Reload and Upgrade. */

#include "supervisor/config/config.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/control.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/reload-call.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/control/upgrade-call.h"
#include "supervisor/group/group.h"
#include "supervisor/process/process.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void get_info(struct request *request)
{
    const struct control_context *context = request->context;
    const struct loop_turns turns = loop_turns(context->loop);
    struct reply *reply;
    struct group *group;
    uint64_t n_jobs = 0;
    size_t cursor = 0;

    while ((group = registry_next(context->registry, &cursor)))
        n_jobs += group->counts.n[JOBS_LIVE];
    reply = request_begin(request);
    reply_string(reply, "version", TROUPE_VERSION);
    reply_int(reply, "pid", context->keeper > 0 ? context->keeper : getpid());
    reply_int(reply, "supervisor_pid", getpid());
    reply_string(reply, "state", report_state(context));
    reply_bool(reply, "safe_mode", context->predecessors.safe_mode);
    reply_string_if(reply, "config_problem", context->config_problem);
    reply_bool(reply, "journal", context->process->journal != NULL);
    reply_uint(reply, "restarts", context->predecessors.n_restarts);
    reply_uint(reply, "upgrades", context->predecessors.n_upgrades);
    reply_uint(reply, "failed_upgrades", context->predecessors.n_failed_upgrades);
    reply_uint(reply, "started_at", context->started_at);
    reply_string(reply, "loop", loop_kind_to_string(loop_kind(context->loop)));
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

static void report_problems(struct reply *reply, const char *key,
                            const struct config_problems *problems)
{
    reply_array(reply, key);
    for (size_t i = 0; i < problems->n_problems; i++) {
        char line[CONFIG_PROBLEM_MAX];

        config_problem_print(line, sizeof(line), &problems->problems[i]);
        reply_string(reply, NULL, line);
    }
    reply_end_array(reply);
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
        report_problems(request_begin_error(request, "BadConfiguration"), "problems",
                        &call->problems);
        request_end(request);
    } else if (call->result == -ESHUTDOWN) {
        request_fail(request, "Stopping");
    } else if (call->result < 0) {
        request_internal(request, call->result);
    } else {
        reply = request_begin(request);
        report_names(reply, "added", call->changes.added);
        report_names(reply, "removed", call->changes.removed);
        report_names(reply, "changed", call->changes.changed);
        if (call->left_safe_mode)
            reply_bool(reply, "left_safe_mode", true);
        if (call->faults.n_problems > 0)
            report_problems(reply, "faults", &call->faults);
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
    bool allow_empty;
};

static void reload_all(struct request *request)
{
    const struct reload_parameters *given = request->parameters;
    struct asked_reload *reload = request_allocate(request, sizeof(*reload));

    if (!reload)
        return;
    control_log_change(request, "");
    reload_call_init(&reload->call, on_reloaded);
    reload->call.allow_empty = given->allow_empty;
    reload->request = request;
    request->state = reload;
    request->drop = drop_reload;
    request->context->reload(request->context->userdata, &reload->call);
}

static const struct varlink_parameter reload_table[] = {
    VARLINK_ROW("allow_empty", BOOL, reload_parameters, allow_empty),
    {0},
};

struct asked_upgrade {
    struct upgrade_call call;
    struct request *request; /* NULL = the client is gone */
};

static void on_upgrade_failed(struct upgrade_call *call, const char *reason)
{
    struct asked_upgrade *upgrade = list_entry(call, struct asked_upgrade, call);
    struct request *request = upgrade->request;

    if (request) {
        request->drop = NULL;
        reply_string(request_begin_error(request, "NotUpgraded"), "reason", reason);
        request_end(request);
    }
    free(upgrade);
}

/* The upgrade goes on without the client. */
static void drop_upgrade(struct request *request)
{
    struct asked_upgrade *upgrade = request->state;

    upgrade->request = NULL;
}

static void upgrade(struct request *request)
{
    struct asked_upgrade *upgrade = request_allocate(request, sizeof(*upgrade));

    if (!upgrade)
        return;
    control_log_change(request, "");
    upgrade->call.failed = on_upgrade_failed;
    upgrade->request = request;
    request->state = upgrade;
    request->drop = drop_upgrade;
    request->context->upgrade(request->context->userdata, &upgrade->call);
}

const struct request_method control_supervisor_methods[] = {
    {"GetInfo", get_info, .changes = false, .always = true},
    {"Reload", reload_all, reload_table, .changes = true, .begins = true, .always = true},
    {"Upgrade", upgrade, .changes = true, .begins = true},
    {0},
};
