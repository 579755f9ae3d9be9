/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: GetLimits, SetLimit. GetLimits: limits, and what is taken of them. The time
 * does not depend on the number of keys, cells or jobs. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/limit-table.h"
#include "supervisor/group/registry.h"
#include "supervisor/store/durable-job.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void report_bounds(struct reply *reply, const struct config_bounds *bounds)
{
    if (limit_has_rate(bounds)) {
        reply_uint(reply, "rate", bounds->rate.n);
        reply_uint(reply, "period_usec", bounds->rate.period);
        reply_uint(reply, "burst", bounds->burst);
    }
    if (bounds->running != CONFIG_UNSET)
        reply_uint(reply, "running", bounds->running);
}

static void report_level(struct reply *reply, const struct limit *limit)
{
    if (limit_has_rate(&limit->bounds))
        reply_uint(reply, "ready", limit_ready(limit));
    reply_uint(reply, "taken", limit->level.taken);
}

/* Whether the bounds differ from those of the file. */
static void report_set(struct reply *reply, const struct limit_table *table, const char *name)
{
    if (limit_table_setting(table, name))
        reply_bool(reply, "set", true);
}

/* Jobs in the queues of groups with cells that wait. */
static uint64_t count_waiting(const struct limit *limit)
{
    uint64_t n = 0;

    list_for_each (node, &limit->uses) {
        const struct limit_use *use = list_entry(node, struct limit_use, link);

        if (use->n_cells > 0)
            n += job_counts_queued(use->limits->counts) - use->limits->n_aside;
    }
    return n;
}

static void report_named(struct reply *reply, const struct limit_table *table,
                         const struct limit *limit)
{
    reply_object(reply, NULL);
    reply_string(reply, "name", limit->name);
    reply_string(reply, "kind", "limit");
    report_bounds(reply, &limit->bounds);
    report_level(reply, limit);
    reply_uint(reply, "waiting", count_waiting(limit));
    reply_uint(reply, "held_usec", limit_held(limit));
    report_set(reply, table, limit->name);
    reply_end_object(reply);
}

static struct config_bounds bounds_of(const struct group *group)
{
    return limit_table_bounds(group->context->limits, group->name, &group->config->limits);
}

static void report_own(struct reply *reply, const struct group *group)
{
    static const char *const pers[] = {
        [CONFIG_LIMIT_PER_GROUP] = "group", [CONFIG_LIMIT_PER_KEY] = "key"};
    const struct limits *limits = &group->limits;
    const struct config_group *config = group->config;
    const usec_t held = limit_held(&limits->own), aside = limits_held_aside(limits);
    const struct config_bounds bounds = bounds_of(group);

    reply_object(reply, NULL);
    reply_string(reply, "name", group->name);
    reply_string(reply, "kind", "group");
    report_bounds(reply, &bounds);
    reply_string(reply, "rate_per", pers[config->rate_per]);
    reply_string(reply, "running_per", pers[config->running_per]);
    if (limit_has_bounds(&limits->own.bounds))
        report_level(reply, &limits->own);
    reply_uint(reply, "waiting", count_waiting(&limits->own) + limits->n_aside);
    reply_uint(reply, "held_usec", held > aside ? held : aside);
    report_set(reply, group->context->limits, group->name);
    reply_end_object(reply);
}

void report_limits_of(struct reply *reply, const struct group *group)
{
    if (!limits_exist(&group->limits))
        return;
    reply_array(reply, "limits");
    if (limit_has_bounds(&group->limits.own.bounds) || group->limits.by_key)
        report_own(reply, group);
    for (size_t i = 0; i < group->limits.n_uses; i++)
        if (group->limits.uses[i].limit != &group->limits.own)
            report_named(reply, group->context->limits, group->limits.uses[i].limit);
    reply_end_array(reply);
}

void report_limits(struct reply *reply, const struct control_context *context)
{
    const struct group *group;
    size_t cursor = 0;

    reply_array(reply, "limits");
    list_for_each (node, &context->groups->limits->limits)
        report_named(reply, context->groups->limits,
                     &list_entry(node, struct named_limit, link)->limit);
    while ((group = registry_next(context->registry, &cursor)))
        if (limit_has_bounds(&group->limits.own.bounds) || group->limits.by_key)
            report_own(reply, group);
    reply_end_array(reply);
}

static void get_limits(struct request *request)
{
    report_limits(request_begin(request), request->context);
    request_end(request);
}

/* ---- SetLimit ---- */

/* Owned by the store until it is written; then it takes effect. */
struct set_call {
    struct store_task task;
    struct request *request; /* NULL = the client has left */
    struct control_context *context;
    struct limit_row row;
    bool resets;
    char name[CONFIG_GROUP_NAME_MAX + 1];
};

static int apply_set(struct store_task *task, struct database *database)
{
    const struct set_call *call = list_entry(task, struct set_call, task);

    return call->resets ? limit_rows_remove(database, call->name)
                        : limit_rows_put(database, call->name, &call->row);
}

static int take_effect(const struct set_call *call)
{
    struct limit_table *table = call->context->groups->limits;
    struct group *group = registry_find(call->context->registry, call->name);
    const int r = limit_table_set(table, call->name, call->resets ? NULL : &call->row);

    if (r == 0 && group)
        group_review_limits(group);
    return r;
}

static void answer_set(struct request *request, const struct set_call *call, int r)
{
    const char *problem;

    request->state = NULL;
    request->drop = NULL;
    if (r == 0) {
        request_done(request);
        return;
    }
    problem = store_problem(call->context->durable->store);
    request_fail_string(request, "NotKept", "problem", *problem != '\0' ? problem : strerror(-r));
}

static void on_set(struct store_task *task, int result)
{
    struct set_call *call = list_entry(task, struct set_call, task);
    int r = result;

    if (r == 0)
        r = take_effect(call);
    if (call->request)
        answer_set(call->request, call, r < 0 ? r : 0);
    free(call);
}

static void drop_set(struct request *request)
{
    struct set_call *call = request->state;

    call->request = NULL;
}

/* Sets `*ret` to a parameter that was given; 0 becomes LIMIT_ROW_NONE. */
static void take_number(const struct request *request, const char *name, uint64_t *ret)
{
    const int64_t value = request_int(request, name, 0);

    if (request_has(request, name))
        *ret = value == 0 ? LIMIT_ROW_NONE : (uint64_t)value;
}

static bool in_range(struct request *request, const char *name, int64_t min, int64_t max,
                     const char *allowed)
{
    const int64_t value = request_int(request, name, 1);

    return (value >= min && value <= max) || request_refuse(request, name, allowed);
}

static bool check_set(struct request *request)
{
    const bool has_rate = request_int(request, "rate", 0) != 0;
    const usec_t period = (usec_t)request_int(request, "period_usec", 0);

    if (!in_range(request, "rate", 0, 1000000, "0 (no limit) to 1000000") ||
        !in_range(request, "burst", 1, 100000, "1 to 100000") ||
        !in_range(request, "running", 0, 1000000000, "0 (no limit) to 1000000000"))
        return false;
    if (has_rate && (period < USEC_PER_MSEC || period > UINT64_C(24) * 3600 * USEC_PER_SEC))
        return request_refuse(request, "period_usec",
                              "with rate, 1000 (1 ms) to 86400000000 (1 day)");
    return true;
}

static bool exists(const struct control_context *context, const char *name)
{
    const struct named_limit *limit = limit_table_find(context->groups->limits, name);
    const struct group *group = registry_find(context->registry, name);

    return (limit && limit->described) || (group && group->removal == GROUP_STAYS);
}

static void begin_set(struct request *request, struct set_call *call)
{
    struct control_context *context = request->context;

    if (!context->durable->store)
        context->want_store(context->userdata);
    if (!context->durable->store) {
        request_fail_string(request, "NotKept", "problem", "there is no store to write it to");
        free(call);
        return;
    }
    call->request = request;
    request->state = call;
    request->drop = drop_set;
    store_add(context->durable->store, &call->task);
}

static void set_limit(struct request *request)
{
    const char *name = request_string(request, "name");
    const struct limit_table *table = request->context->groups->limits;
    const struct limit_row *before;
    struct set_call *call;

    if (!exists(request->context, name)) {
        request_fail_string(request, "NoSuchTarget", "target", name);
        return;
    }
    before = limit_table_setting(table, name);
    if (!check_set(request))
        return;
    if (!before && table->n_settings >= LIMIT_SETTINGS_MAX) {
        request_fail_string(request, "NotKept", "problem", "1000 limits are set already");
        return;
    }
    call = calloc(1, sizeof(*call));
    if (!call) {
        request_internal(request, -ENOMEM);
        return;
    }
    call->task = (struct store_task){.addition = true, .apply = apply_set, .done = on_set};
    list_init(&call->task.link);
    call->context = request->context;
    (void)snprintf(call->name, sizeof(call->name), "%s", name);
    call->resets = request_bool(request, "reset");
    if (before)
        call->row = *before;
    take_number(request, "rate", &call->row.rate);
    take_number(request, "period_usec", &call->row.period);
    take_number(request, "burst", &call->row.burst);
    take_number(request, "running", &call->row.running);
    begin_set(request, call);
}

const struct request_method control_limit_methods[] = {
    {"GetLimits", get_limits, .changes = false},
    {"SetLimit", set_limit, .changes = true, .begins = true},
    {0},
};
