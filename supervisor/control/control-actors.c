/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: who is there, held back and let go. */

#include "supervisor/control/control-actors.h"

#include "supervisor/control/control-context.h"
#include "supervisor/control/control-list.h"
#include "supervisor/control/control-submit.h"
#include "supervisor/control/control-target.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report-actor.h"
#include "supervisor/group/group.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/delivery.h"
#include "supervisor/message/message-log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- shared ---- */

bool control_take_topic(struct request *request, const char *type, const struct varlink_bytes *key,
                        struct topic *ret)
{
    const char *given = type ? type : "";

    if (!topic_type_valid(given, strlen(given)))
        return control_refuse_option(request, "type", CONTROL_TYPE_ALLOWED);
    if (key->size > TOPIC_KEY_MAX)
        return control_refuse_option(request, "key", "at most 255 bytes");
    *ret = (struct topic){.type = given,
                          .type_size = (uint32_t)strlen(given),
                          .key = key->data,
                          .key_size = (uint32_t)key->size};
    return true;
}

/* Why a group of that name is no actor; NULL = there is no such group, or it should be one. */
static const char *why_no_actor(const struct group *group)
{
    if (!group || group->config->type == CONFIG_ACTOR)
        return NULL;
    return "it is a plain service (Type=service), which takes neither jobs nor messages";
}

static void refuse_actor(struct request *request, const char *name)
{
    struct registry *registry = request->context->registry;
    const char *reason = why_no_actor(registry_find(registry, name));
    struct reply *reply = request_begin_error(request, "NoSuchActor");

    reply_string(reply, "name", name);
    reply_string_if(reply, "nearest", reason ? NULL : registry_nearest(registry, name));
    reply_string_if(reply, "reason", reason);
    request_end(request);
}

struct actor *control_find_actor(struct request *request, const char *name)
{
    struct actor *actor = actor_by_address(request->context->messages, name);

    if (!actor)
        refuse_actor(request, name);
    return actor;
}

struct actor *control_find_exchange(struct request *request, const char *name)
{
    struct actor *actor = actor_by_name(request->context->messages, name);

    if (actor && actor_exchange(actor))
        return actor;
    request_fail_string(request, "NoSuchExchange", "name", name);
    return NULL;
}

void control_refuse_routing(struct request *request, const char *to, int result)
{
    struct reply *reply;

    switch (result) {
    case ROUTER_E_GONE:
        refuse_actor(request, to);
        break;
    case ROUTER_E_FULL:
        request_fail_string(request, "MailboxFull", "name", to);
        break;
    case ROUTER_E_NO_MATCH:
        request_fail_string(request, "NoMatch", "exchange", to);
        break;
    case ROUTER_E_NO_KEY:
        control_refuse_option(request, "key", CONTROL_KEY_ALLOWED);
        break;
    case ROUTER_E_CELLS:
        reply = request_begin_error(request, "TooManyCells");
        control_report_cells(reply, registry_group_of(request->context->registry, to));
        request_end(request);
        break;
    default:
        request_internal(request, result == ROUTER_E_MEMORY ? -ENOMEM : result);
    }
}

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

/* The cursor is a place in the table of actors, where an actor stays for life. */
struct actors {
    struct control_list list;
    const char *kind, *under; /* borrowed from the call, which lives as long as we do */
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

    if (actor->identity) /* a stand-in: the place is listed */
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

/* A group's or an exchange's switches; NULL when it has been answered. */
static uint8_t *find_log(struct request *request, const char *target, struct group **ret)
{
    struct control_context *context = request->context;
    struct actor *actor = actor_by_name(context->messages, target);

    *ret = registry_find(context->registry, target);
    if (*ret)
        return &(*ret)->message_log;
    if (actor && actor_exchange(actor))
        return &actor->log;
    refuse_actor(request, target);
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
