/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: Lookup, ListActors, Pause, Resume, SetMessageLog. */

#include "supervisor/control/actors/actors.h"
#include "supervisor/control/actors/report-actor.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/paged-list.h"
#include "supervisor/control/report.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/message-context.h"

struct actor_parameters {
    const char *name, *under;
    struct varlink_int kind;
    struct control_page page;
};

static void lookup(struct request *request)
{
    const struct actor_parameters *given = request->parameters;
    const struct actor *actor = control_find_actor(request, given->name);

    if (!actor)
        return;
    report_actor(request_begin(request), "actor", actor);
    request_end(request);
}

static bool is_listed(const struct actor *actor, const struct actor_parameters *given)
{
    if (actor->place) /* a standby: its place is listed instead */
        return false;
    if (given->kind.set && (int64_t)actor->class->kind != given->kind.value)
        return false;
    return !given->under || report_is_below(actor->name, given->under);
}

/* The cursor is an index of the actor table, which is constant for each actor. */
static bool step_actors(struct control_list *list)
{
    const struct request *request = list->parts.request;
    const struct handle_table *table = &request->context->messages->actors;
    const struct actor *actor;

    if (list->cursor >= table->n_entries)
        return false;
    actor = table->entries[list->cursor++].object;
    if (actor && is_listed(actor, request->parameters))
        report_actor(control_list_item(list), NULL, actor);
    return true;
}

static void list_actors(struct request *request)
{
    const struct actor_parameters *given = request->parameters;
    struct control_list *list = request_allocate(request, sizeof(*list));

    if (!list)
        return;
    list->step = step_actors;
    control_list(request, list, "actors", &given->page);
}

static void change(struct request *request, void (*apply)(struct actor *actor))
{
    const struct actor_parameters *given = request->parameters;
    struct actor *actor = control_find_actor(request, given->name);

    if (!actor)
        return;
    apply(actor);
    request_done(request);
}

static void pause_actor(struct request *request)
{
    change(request, delivery_pause);
}

static void resume_actor(struct request *request)
{
    change(request, delivery_resume);
}

struct log_parameters {
    const char *target;
    struct varlink_flag enqueued, dispatched, unhandled;
};

/* The switches of a group or exchange; NULL = an error has been sent. */
static uint8_t *find_log(struct request *request, const char *target, struct group **ret)
{
    struct control_context *context = request->context;
    struct actor *actor = actor_by_name(context->messages, target);

    *ret = registry_find(context->registry, target);
    if (*ret)
        return &(*ret)->message_log;
    if (actor && actor_exchange(actor))
        return &actor->log;
    control_refuse_actor(request, target);
    return NULL;
}

static uint8_t with_bit(uint8_t what, struct varlink_flag given, enum actor_log bit)
{
    if (!given.set)
        return what;
    return (uint8_t)(given.value ? what | bit : what & ~bit);
}

static void set_message_log(struct request *request)
{
    const struct log_parameters *given = request->parameters;
    struct group *group;
    uint8_t *log = find_log(request, given->target, &group), what;
    struct reply *reply;

    if (!log)
        return;
    what = with_bit(*log, given->enqueued, ACTOR_LOG_ENQUEUED);
    what = with_bit(what, given->dispatched, ACTOR_LOG_DISPATCHED);
    what = with_bit(what, given->unhandled, ACTOR_LOG_UNHANDLED);
    if (group)
        group_set_message_log(group, what);
    else
        *log = what;
    reply = request_begin(request);
    reply_bool(reply, "enqueued", what & ACTOR_LOG_ENQUEUED);
    reply_bool(reply, "dispatched", what & ACTOR_LOG_DISPATCHED);
    reply_bool(reply, "unhandled", what & ACTOR_LOG_UNHANDLED);
    request_end(request);
}

static const struct varlink_parameter name_table[] = {
    VARLINK_ROW("name", STRING, actor_parameters, name, .required = true),
    {0},
};
static const struct varlink_parameter actor_table[] = {
    VARLINK_ROW("actor", STRING, actor_parameters, name, .required = true),
    {0},
};
static const struct varlink_parameter list_table[] = {
    VARLINK_ROW("kind", CHOICE, actor_parameters, kind,
                .allowed = "slot, pool, group, exchange, client"),
    VARLINK_ROW("under", STRING, actor_parameters, under),
    CONTROL_PAGE_ROWS(actor_parameters),
    {0},
};
static const struct varlink_parameter log_table[] = {
    VARLINK_ROW("target", STRING, log_parameters, target, .required = true),
    VARLINK_ROW("enqueued", FLAG, log_parameters, enqueued),
    VARLINK_ROW("dispatched", FLAG, log_parameters, dispatched),
    VARLINK_ROW("unhandled", FLAG, log_parameters, unhandled),
    {0},
};

const struct request_method control_actor_methods[] = {
    {"Lookup", lookup, name_table, .changes = false},
    {"ListActors", list_actors, list_table, .changes = false},
    {"Pause", pause_actor, actor_table, .changes = true},
    {"Resume", resume_actor, actor_table, .changes = true},
    {"SetMessageLog", set_message_log, log_table, .changes = true},
    {0},
};
