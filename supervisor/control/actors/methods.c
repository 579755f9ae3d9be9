/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: Lookup, ListActors, Pause, Resume, SetMessageLog. */

#include "supervisor/control/actors/actors.h"
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

static void lookup(struct request *request)
{
    const struct actor *actor = control_find_actor(request, request_string(request, "name"));

    if (!actor)
        return;
    report_actor(request_begin(request), "actor", actor);
    request_end(request);
}

static bool is_listed(const struct actor *actor, const struct request *request)
{
    const int kind = varlink_choice(&request->parameters, "kind");
    const char *under = request_string(request, "under");

    if (actor->place) /* a standby: its place is listed instead */
        return false;
    if (kind >= 0 && (int)actor->class->kind != kind)
        return false;
    return !under || report_is_below(actor->name, under);
}

static void write_actor(struct control_list *list, const void *actor)
{
    if (is_listed(actor, list->parts.request))
        report_actor(control_list_item(list), NULL, actor);
}

static void list_actors(struct request *request)
{
    control_list_table(request, "actors", &request->context->messages->actors, write_actor);
}

static void change(struct request *request, void (*apply)(struct actor *actor))
{
    struct actor *actor = control_find_actor(request, request_string(request, "actor"));

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

static uint8_t with_bit(const struct request *request, uint8_t what, const char *name,
                        enum actor_log bit)
{
    if (!request_has(request, name))
        return what;
    return (uint8_t)(request_bool(request, name) ? what | bit : what & ~bit);
}

static void set_message_log(struct request *request)
{
    struct group *group;
    uint8_t *log = find_log(request, request_string(request, "target"), &group), what;
    struct reply *reply;

    if (!log)
        return;
    what = with_bit(request, *log, "enqueued", ACTOR_LOG_ENQUEUED);
    what = with_bit(request, what, "dispatched", ACTOR_LOG_DISPATCHED);
    what = with_bit(request, what, "unhandled", ACTOR_LOG_UNHANDLED);
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

const struct request_method control_actor_methods[] = {
    {"Lookup", lookup, .changes = false},
    {"ListActors", list_actors, .changes = false},
    {"Pause", pause_actor, .changes = true},
    {"Resume", resume_actor, .changes = true},
    {"SetMessageLog", set_message_log, .changes = true},
    {0},
};
