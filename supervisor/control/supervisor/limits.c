/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: GetLimits and SetLimit. The time of GetLimits does not depend on the
 * numbers of keys, cells and jobs. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/control/setting-call.h"
#include "supervisor/group/cell/cell-limit-key.h"
#include "supervisor/group/cell/limit-table.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
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
    reply_uint(reply, "taken", limit->taken);
}

static void begin_limit(struct reply *reply, const char *name, const char *kind)
{
    reply_object(reply, NULL);
    reply_string(reply, "name", name);
    reply_string(reply, "kind", kind);
}

static void end_limit(struct reply *reply, uint64_t n_waiting, usec_t held, bool is_set)
{
    reply_uint(reply, "waiting", n_waiting);
    reply_uint(reply, "held_usec", held);
    if (is_set)
        reply_bool(reply, "set", true);
    reply_end_object(reply);
}

/* Counts the queued jobs of groups in which cells wait for the limit. */
static uint64_t count_waiting(const struct limit *limit)
{
    uint64_t n = 0;

    list_for_each_entry (use, &limit->uses, struct limit_use, link)
        if (use->n_cells > 0)
            n += job_counts_queued(use->limits->counts) - use->limits->n_aside;
    return n;
}

static void report_named(struct reply *reply, const struct limit_table *table,
                         const struct limit *limit)
{
    begin_limit(reply, limit->name, "limit");
    report_bounds(reply, &limit->bounds);
    report_level(reply, limit);
    end_limit(reply, count_waiting(limit), limit_held(limit),
              limit_table_setting(table, limit->name));
}

static bool has_own(const struct group *group)
{
    return limit_has_bounds(&group->limits.bounds) ||
           limit_table_setting(group->limits.table, group->name);
}

static void report_own(struct reply *reply, const struct group *group)
{
    static const char *const pers[] = {
        [CONFIG_LIMIT_PER_GROUP] = "group", [CONFIG_LIMIT_PER_KEY] = "key"};
    const struct limits *limits = &group->limits;
    const usec_t held = limit_held(&limits->own), aside = limits_held_aside(limits);

    begin_limit(reply, group->name, "group");
    report_bounds(reply, &limits->bounds);
    reply_string(reply, "rate_per", pers[group->config->rate_per]);
    reply_string(reply, "running_per", pers[group->config->running_per]);
    if (limit_has_bounds(&limits->own.bounds))
        report_level(reply, &limits->own);
    end_limit(reply, count_waiting(&limits->own) + limits->n_aside, held > aside ? held : aside,
              limit_table_setting(limits->table, group->name));
}

void report_limits_of(struct reply *reply, const struct group *group)
{
    const struct limits *limits = &group->limits;

    if (!has_own(group) && limits->n_uses == 1)
        return;
    reply_array(reply, "limits");
    if (has_own(group))
        report_own(reply, group);
    for (size_t i = 0; i < limits->n_uses; i++)
        if (limits->uses[i].limit != &limits->own)
            report_named(reply, limits->table, limits->uses[i].limit);
    reply_end_array(reply);
}

/* Reports all limits but those of keys. */
static void report_shared(struct reply *reply, const struct control_context *context)
{
    const struct limit_table *table = context->groups->limits;

    list_for_each_entry (limit, &table->limits, struct named_limit, link)
        report_named(reply, table, &limit->limit);
    registry_each_group (group, context->registry)
        if (has_own(group))
            report_own(reply, group);
}

void report_limits(struct reply *reply, const struct control_context *context)
{
    reply_array(reply, "limits");
    report_shared(reply, context);
    reply_end_array(reply);
}

/* ---- limits that were set: of keys, and without a file ---- */

static void report_key(struct reply *reply, const struct group *group, const char *name)
{
    const char *text = name + strlen(group->name) + 1;
    const struct limit_key *key = limit_keys_find(&group->limits, text, strlen(text));
    const struct limit limit = limit_keys_look(&group->limits, text, strlen(text));
    const uint64_t n_waiting = key && key->held ? key->held->n_jobs : 0;

    begin_limit(reply, name, "key");
    report_bounds(reply, &limit.bounds);
    report_level(reply, &limit);
    end_limit(reply, n_waiting, n_waiting > 0 ? limit_held(&key->limit) : 0, true);
}

/* Reports a limit that was set and that no file describes any more: a reset removes it. */
static void report_gone(struct reply *reply, const struct setting *setting)
{
    const struct config_bounds none = LIMIT_NO_BOUNDS;
    const struct config_bounds bounds =
        limit_row_bounds((const struct limit_row *)setting->row, &none);

    begin_limit(reply, setting->name, "undescribed");
    report_bounds(reply, &bounds);
    end_limit(reply, 0, 0, true);
}

/* The group whose own limit, or whose key, has this name; NULL = none. */
static struct group *group_of(const struct control_context *context, const char *name)
{
    struct group *group = context->groups->group_of(context->registry, name);
    const bool is_its =
        group && (strcmp(group->name, name) == 0 || limit_is_key_of(name, group->name));

    return is_its && group->removal == GROUP_STAYS ? group : NULL;
}

static bool is_described(const struct control_context *context, const char *name)
{
    const struct named_limit *limit = limit_table_find(context->groups->limits, name);

    return (limit && limit->described) || group_of(context, name);
}

/* Routing keys are contents. */
static void report_setting(struct reply *reply, const struct request *request,
                           const struct setting *setting)
{
    const struct group *group = group_of(request->context, setting->name);
    const bool is_key = strchr(setting->name, '/');

    if (is_key && !access_group(request, group))
        return;
    if (is_key && group)
        report_key(reply, group, setting->name);
    else if (!is_described(request->context, setting->name))
        report_gone(reply, setting);
}

static void get_limits(struct request *request)
{
    const struct control_context *context = request->context;
    struct reply *reply = request_begin(request);

    reply_array(reply, "limits");
    report_shared(reply, context);
    list_for_each_entry (setting, &context->groups->limits->settings.all, struct setting, link)
        report_setting(reply, request, setting);
    reply_end_array(reply);
    request_end(request);
}

/* ---- SetLimit ---- */

static bool concerns(const char *name, const struct group *group)
{
    if (strcmp(name, group->name) == 0)
        return true;
    for (char **used = group->config->uses.strings; used && *used; used++)
        if (strcmp(*used, name) == 0)
            return true;
    return false;
}

static void take_effect(const struct setting_call *call)
{
    const struct control_context *context = call->context;

    limit_table_apply(context->groups->limits, call->name);
    registry_each_group (group, context->registry)
        if (limit_is_key_of(call->name, group->name))
            group_review_key_limits(group);
        else if (concerns(call->name, group))
            group_review_limits(group);
}

/* Sets `*ret` to a parameter that was given; 0 becomes LIMIT_ROW_NONE. */
static void take_number(const struct request *request, const char *name, uint64_t *ret)
{
    const int64_t value = request_int(request, name, 0);

    if (request_has(request, name))
        *ret = value == 0 ? LIMIT_ROW_NONE : (uint64_t)value;
}

static bool check_set(struct request *request)
{
    const bool has_rate = request_int(request, "rate", 0) != 0;
    const usec_t period = (usec_t)request_int(request, "period_usec", 0);

    if (!request_range(request, "rate", 0, 1000000) ||
        !request_range(request, "burst", 1, 100000) ||
        !request_range(request, "running", 0, 1000000000))
        return false;
    if (has_rate && (period < USEC_PER_MSEC || period > UINT64_C(24) * 3600 * USEC_PER_SEC))
        return request_refuse(request, "period_usec",
                              "with rate, 1000 (1 ms) to 86400000000 (1 day)");
    return true;
}

/* A key can have only those limits that the group has for each key. */
static bool check_key(struct request *request, const struct group *group, const char *name)
{
    const struct config_group *config = group ? group->config : NULL;

    if (!group || strcmp(name, group->name) == 0)
        return true;
    if (name[strlen(group->name) + 1] == '\0' || strlen(name) > LIMIT_SETTING_NAME_MAX)
        return request_refuse(request, "name", "GROUP/KEY, with a key of 1 to 255 bytes");
    if (config->rate_per != CONFIG_LIMIT_PER_KEY &&
        (request_has(request, "rate") || request_has(request, "burst")))
        return request_refuse(request, "rate", "of a key, in a group with RatePer=key");
    if (config->running_per != CONFIG_LIMIT_PER_KEY && request_has(request, "running"))
        return request_refuse(request, "running", "of a key, in a group with RunningPer=key");
    return true;
}

static void set_limit(struct request *request)
{
    struct control_context *context = request->context;
    struct limit_table *table = context->groups->limits;
    const char *name = request_string(request, "name");
    const struct limit_row *before = limit_table_setting(table, name);
    struct setting_call call = {.settings = &table->settings,
                                .name = name,
                                .removes = request_bool(request, "reset"),
                                .take_effect = take_effect,
                                .end = request_done};

    if (!is_described(context, name) && !(before && call.removes)) {
        request_fail_string(request, "NoSuchTarget", "target", name);
        return;
    }
    if (!check_key(request, group_of(context, name), name) || !check_set(request))
        return;
    if (!before && limit_table_is_full(table)) {
        request_fail_string(request, "NotKept", "problem", "1000 limits are set already");
        return;
    }
    if (before)
        call.row = *before;
    take_number(request, "rate", &call.row.rate);
    take_number(request, "period_usec", &call.row.period);
    take_number(request, "burst", &call.row.burst);
    take_number(request, "running", &call.row.running);
    control_set(request, &call);
}

const struct request_method control_limit_methods[] = {
    {"GetLimits", get_limits, .changes = false},
    {"SetLimit", set_limit, .changes = true, .begins = true},
    {0},
};
