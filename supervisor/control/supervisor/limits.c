/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor.GetLimits: limits, and what is taken of them. The time does not depend on
 * the number of keys, cells or jobs. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/limit-table.h"
#include "supervisor/group/registry.h"

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

static void report_named(struct reply *reply, const struct limit *limit)
{
    reply_object(reply, NULL);
    reply_string(reply, "name", limit->name);
    reply_string(reply, "kind", "limit");
    report_bounds(reply, &limit->bounds);
    report_level(reply, limit);
    reply_uint(reply, "waiting", count_waiting(limit));
    reply_uint(reply, "held_usec", limit_held(limit));
    reply_end_object(reply);
}

static void report_own(struct reply *reply, const struct group *group)
{
    static const char *const pers[] = {
        [CONFIG_LIMIT_PER_GROUP] = "group", [CONFIG_LIMIT_PER_KEY] = "key"};
    const struct limits *limits = &group->limits;
    const struct config_group *config = group->config;
    const usec_t held = limit_held(&limits->own), aside = limits_held_aside(limits);

    reply_object(reply, NULL);
    reply_string(reply, "name", group->name);
    reply_string(reply, "kind", "group");
    report_bounds(reply, &config->limits);
    reply_string(reply, "rate_per", pers[config->rate_per]);
    reply_string(reply, "running_per", pers[config->running_per]);
    if (limit_has_bounds(&limits->own.bounds))
        report_level(reply, &limits->own);
    reply_uint(reply, "waiting", count_waiting(&limits->own) + limits->n_aside);
    reply_uint(reply, "held_usec", held > aside ? held : aside);
    reply_end_object(reply);
}

void report_limits_of(struct reply *reply, const struct group *group)
{
    if (!limits_exist(&group->limits))
        return;
    reply_array(reply, "limits");
    if (limit_has_bounds(&group->config->limits))
        report_own(reply, group);
    for (size_t i = 0; i < group->limits.n_uses; i++)
        if (group->limits.uses[i].limit != &group->limits.own)
            report_named(reply, group->limits.uses[i].limit);
    reply_end_array(reply);
}

void report_limits(struct reply *reply, const struct control_context *context)
{
    const struct group *group;
    size_t cursor = 0;

    reply_array(reply, "limits");
    list_for_each (node, &context->groups->limits->limits)
        report_named(reply, &list_entry(node, struct named_limit, link)->limit);
    while ((group = registry_next(context->registry, &cursor)))
        if (limit_has_bounds(&group->config->limits))
            report_own(reply, group);
    reply_end_array(reply);
}

static void get_limits(struct request *request)
{
    report_limits(request_begin(request), request->context);
    request_end(request);
}

const struct request_method control_limit_methods[] = {
    {"GetLimits", get_limits, .changes = false},
    {0},
};
