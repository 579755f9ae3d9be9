/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: GetInfo, Explain, Reload and Upgrade. */

#include "supervisor/config/config.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/control.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/control/service-change.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group.h"
#include "supervisor/process/process.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/store.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void report_kept_back(struct reply *reply, const struct control_context *context)
{
    if (!context->kept_back)
        return;
    reply_array(reply, "kept_back");
    for (char **mistake = context->kept_back; *mistake; mistake++)
        reply_string(reply, NULL, *mistake);
    reply_end_array(reply);
}

static void get_info(struct request *request)
{
    const struct control_context *context = request->context;
    const struct loop_turns turns = loop_turns(context->loop);
    struct reply *reply;
    uint64_t n_jobs = 0;

    registry_each_group (group, context->registry)
        n_jobs += group->counts.n[JOBS_LIVE];
    reply = request_begin(request);
    reply_string(reply, "version", TROUPE_VERSION);
    reply_int(reply, "interface_version", request->interface->description.version);
    reply_int(reply, "pid", context->keeper > 0 ? context->keeper : getpid());
    reply_int(reply, "supervisor_pid", getpid());
    reply_string(reply, "state", report_state(context));
    reply_bool(reply, "safe_mode", context->predecessors.safe_mode);
    reply_string_if(reply, "config_problem", context->config_problem);
    report_kept_back(reply, context);
    reply_bool(reply, "journal", context->process->journal != NULL);
    reply_uint(reply, "restarts", context->predecessors.n_restarts);
    reply_uint(reply, "upgrades", context->predecessors.n_upgrades);
    reply_uint(reply, "failed_upgrades", context->predecessors.n_failed_upgrades);
    reply_uint(reply, "started_at", context->started_at);
    reply_string(reply, "loop", loop_kind_to_string(loop_kind(context->loop)));
    reply_string(reply, "wake",
                 loop_wake_backend(context->loop) == WAKE_FUTEX ? "futex" : "eventfd");
    reply_string(reply, "cgroups", context->cgroups_text ? context->cgroups_text : "");
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

/* ---- changes that continue without their client ---- */

struct detached {
    struct request *request; /* NULL = the client is gone */
};

static void drop_detached(struct request *request)
{
    struct detached *detached = request->state;

    detached->request = NULL;
}

/* `detached` begins the state of the call. */
static void detach(struct request *request, struct detached *detached)
{
    detached->request = request;
    request->state = detached;
    request->drop = drop_detached;
}

/* Returns the call to answer, whose state the caller frees; NULL = the client is gone. */
static struct request *attached(const struct detached *detached)
{
    if (detached->request)
        detached->request->drop = NULL;
    return detached->request;
}

struct asked_reload {
    struct detached detached;
    struct reload_call call;
};

static void on_reloaded(struct reload_call *call)
{
    struct asked_reload *reload = list_entry(call, struct asked_reload, call);
    struct request *request = attached(&reload->detached);

    if (request)
        answer_reload(request, call);
    reload_call_deinit(call);
    free(reload);
}

static void reload_all(struct request *request)
{
    struct asked_reload *reload = request_allocate(request, sizeof(*reload));

    if (!reload)
        return;
    control_log_change(request, "");
    reload_call_init(&reload->call, on_reloaded);
    reload->call.allow_empty = request_bool(request, "allow_empty");
    detach(request, &reload->detached);
    request->context->reload(request->context->userdata, &reload->call);
}

struct asked_upgrade {
    struct detached detached;
    struct upgrade_call call;
};

static void on_upgrade_failed(struct upgrade_call *call, const char *reason)
{
    struct asked_upgrade *upgrade = list_entry(call, struct asked_upgrade, call);
    struct request *request = attached(&upgrade->detached);

    if (request)
        request_fail_string(request, "NotUpgraded", "reason", reason);
    free(upgrade);
}

static void upgrade(struct request *request)
{
    struct asked_upgrade *upgrade = request_allocate(request, sizeof(*upgrade));

    if (!upgrade)
        return;
    control_log_change(request, "");
    upgrade->call.failed = on_upgrade_failed;
    detach(request, &upgrade->detached);
    request->context->upgrade(request->context->userdata, &upgrade->call);
}

/* ---- what a target waits for ---- */

static void explain(struct request *request)
{
    struct registry_target target;
    struct reply *reply;

    if (!control_find_target(request, request_string(request, "target"), &target))
        return;
    reply = request_begin(request);
    if (target.slot)
        waits_of_slot(reply, target.slot);
    else if (target.cell)
        waits_of_cell(reply, target.cell);
    else
        waits_of_group(reply, target.group);
    request_end(request);
}

const struct request_method control_supervisor_methods[] = {
    {"GetInfo", get_info, .changes = false, .always = true},
    {"Reload", reload_all, .changes = true, .begins = true, .always = true},
    {"Upgrade", upgrade, .changes = true, .begins = true},
    {"Explain", explain, .changes = false},
    {0},
};
