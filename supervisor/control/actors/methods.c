/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: Lookup, ListActors, Pause, Resume, SetMessageLog, and the table of all methods.
 */

#include "supervisor/control/actors/actors.h"
#include "supervisor/control/actors/report-actor.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/list.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/message-log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lookup, ListActors ---- */

struct name_parameters {
    const char *name;
};

static void lookup(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"name", VARLINK_STRING, true, offsetof(struct name_parameters, name)},
        {0},
    };
    struct name_parameters parameters = {0};
    const struct actor *actor;

    if (!request_take(request, table, &parameters))
        return;
    actor = control_find_actor(request, parameters.name);
    if (!actor)
        return;
    report_actor(request_begin(request), "actor", actor);
    request_end(request);
}

struct actors_parameters {
    const char *kind, *under;
    struct control_page page;
};

/* The cursor is an index of the actor table, which is constant for each actor. */
struct actors {
    struct control_list list;
    const char *kind, *under; /* borrowed from the call */
};

static bool kind_exists(const char *kind)
{
    for (unsigned i = 0; i < _ACTOR_N_KINDS; i++)
        if (strcmp(actor_kind_to_string((enum actor_kind)i), kind) == 0)
            return true;
    return false;
}

static bool is_listed(const struct actor *actor, const struct actors *wanted)
{
    const size_t size = wanted->under ? strlen(wanted->under) : 0;

    if (actor->place) /* a standby: its place is listed instead */
        return false;
    if (wanted->kind && strcmp(actor_kind_to_string(actor->class->kind), wanted->kind) != 0)
        return false;
    return !wanted->under || (strncmp(actor->name, wanted->under, size) == 0 &&
                              (actor->name[size] == '\0' || actor->name[size] == '/'));
}

static bool step_actors(struct control_list *list)
{
    const struct actor_table *table = &list->parts.request->context->messages->actors;
    const struct actor *actor;

    if (list->cursor >= table->handles.n_entries)
        return false;
    actor = table->handles.entries[list->cursor++].object;
    if (actor && is_listed(actor, list_entry(list, struct actors, list)))
        report_actor(control_list_item(list), NULL, actor);
    return true;
}

static void list_actors(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"kind", VARLINK_STRING, false, offsetof(struct actors_parameters, kind)},
        {"under", VARLINK_STRING, false, offsetof(struct actors_parameters, under)},
        CONTROL_PAGE_ROWS(struct actors_parameters),
        {0},
    };
    struct actors_parameters parameters = {0};
    struct actors *actors;

    if (!request_take(request, table, &parameters) || !control_take_page(request, &parameters.page))
        return;
    if (parameters.kind && !kind_exists(parameters.kind)) {
        control_refuse_option(request, "kind", "slot, pool, group, exchange, client");
        return;
    }
    actors = calloc(1, sizeof(*actors));
    if (!actors) {
        request_internal(request, -ENOMEM);
        return;
    }
    actors->list.step = step_actors;
    actors->kind = parameters.kind;
    actors->under = parameters.under;
    control_list(request, &actors->list, "actors", &parameters.page);
}

/* ---- Pause, Resume ---- */

struct actor_parameters {
    const char *actor;
};

static struct actor *take_actor(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"actor", VARLINK_STRING, true, offsetof(struct actor_parameters, actor)},
        {0},
    };
    struct actor_parameters parameters = {0};

    if (!request_take(request, table, &parameters))
        return NULL;
    return control_find_actor(request, parameters.actor);
}

static void pause_actor(struct request *request)
{
    struct actor *actor = take_actor(request);

    if (!actor)
        return;
    delivery_pause(actor);
    request_done(request);
}

static void resume_actor(struct request *request)
{
    struct actor *actor = take_actor(request);

    if (!actor)
        return;
    delivery_resume(actor);
    request_done(request);
}

/* ---- SetMessageLog ---- */

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
    static const struct varlink_parameter table[] = {
        {"target", VARLINK_STRING, true, offsetof(struct log_parameters, target)},
        {"enqueued", VARLINK_FLAG, false, offsetof(struct log_parameters, enqueued)},
        {"dispatched", VARLINK_FLAG, false, offsetof(struct log_parameters, dispatched)},
        {"unhandled", VARLINK_FLAG, false, offsetof(struct log_parameters, unhandled)},
        {0},
    };
    struct log_parameters parameters = {0};
    struct group *group;
    struct reply *reply;
    uint8_t *log, what;

    if (!request_take(request, table, &parameters))
        return;
    log = find_log(request, parameters.target, &group);
    if (!log)
        return;
    what = *log;
    what = with_bit(what, parameters.enqueued, ACTOR_LOG_ENQUEUED);
    what = with_bit(what, parameters.dispatched, ACTOR_LOG_DISPATCHED);
    what = with_bit(what, parameters.unhandled, ACTOR_LOG_UNHANDLED);
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

const struct request_method control_actors_methods[] = {
    {"Lookup", lookup, false},
    {"ListActors", list_actors, false},
    {"Tell", control_tell, true},
    {"Ask", control_ask, true},
    {"Schedule", control_schedule, true},
    {"Unschedule", control_unschedule, true},
    {"ListTimers", control_list_timers, false},
    {"Pause", pause_actor, true},
    {"Resume", resume_actor, true},
    {"Subscribe", control_subscribe, true},
    {"Unsubscribe", control_unsubscribe, true},
    {"CreateExchange", control_create_exchange, true},
    {"DeleteExchange", control_delete_exchange, true},
    {"ListExchanges", control_list_exchanges, false},
    {"ListSubscriptions", control_list_subscriptions, false},
    {"ListDeadLetters", control_list_dead_letters, false},
    {"GetDeadLetter", control_get_dead_letter, false},
    {"Requeue", control_requeue, true},
    {"Purge", control_purge, true},
    {"SetMessageLog", set_message_log, true},
    {0},
};
