/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: actors, exchanges and subscriptions. */

#include "supervisor/control/actors/actors.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/exchange/exchange-actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/varlink/request-parts.h"
#include <stdlib.h>

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

static void write_actor(struct request_parts *parts, const void *actor)
{
    if (is_listed(actor, parts->request))
        report_actor(request_part_item(parts), NULL, actor);
}

static void list_actors(struct request *request)
{
    request_list_table(request, "actors", &request->context->messages->actors, write_actor);
}

static void set_paused(struct request *request)
{
    struct actor *actor = control_find_actor(request, request_string(request, "actor"));

    if (!actor)
        return;
    if (strcmp(request->method->name, "Pause") == 0)
        delivery_pause(actor);
    else
        delivery_resume(actor);
    request_done(request);
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

/* ---- exchanges ---- */

struct subscription_wanted {
    struct exchange *exchange;
    struct exchange_subscriber *subscriber;
    struct topic topic;
};

static bool take_subscription(struct request *request, struct subscription_wanted *ret)
{
    struct actor *exchange, *actor;

    if (!control_take_topic(request, &ret->topic))
        return false;
    exchange = control_find_exchange(request, request_string(request, "exchange"));
    actor = exchange ? control_find_actor(request, request_string(request, "actor")) : NULL;
    if (!actor)
        return false;
    ret->exchange = exchange->owner;
    ret->subscriber = &actor->subscriptions;
    return true;
}

static void subscribe(struct request *request)
{
    struct subscription_wanted wanted;
    int r;

    if (!take_subscription(request, &wanted))
        return;
    r = exchange_subscribe(wanted.exchange, wanted.subscriber, &wanted.topic);
    if (r == EXCHANGE_E_FULL)
        request_fail_string(request, "TooMany", "what", "subscriptions");
    else if (r < 0)
        request_internal(request, r);
    else
        request_done(request);
}

static void unsubscribe(struct request *request)
{
    struct subscription_wanted wanted;
    bool existed;

    if (!take_subscription(request, &wanted))
        return;
    existed = exchange_unsubscribe(wanted.exchange, wanted.subscriber, &wanted.topic);
    reply_bool(request_begin(request), "existed", existed);
    request_end(request);
}

static void create_exchange(struct request *request)
{
    const char *name = request_string(request, "name");
    const int kind = varlink_choice(&request->parameters, "kind");
    struct actor *actor = NULL;
    int r = exchange_actor_new(&actor, request->context->messages, name, (enum exchange_kind)kind,
                               false);

    switch (r) {
    case 0:
        reply_reference(request_begin(request), actor->reference);
        request_end(request);
        break;
    case ACTOR_E_EXISTS:
        request_fail_string(request, "NameExists", "name", name);
        break;
    case ACTOR_E_BAD_NAME:
        request_refuse(request, "name", ACTOR_NAME_RULE);
        break;
    case ACTOR_E_TOO_MANY:
        request_fail_string(request, "TooMany", "what", "exchanges");
        break;
    default:
        request_internal(request, r);
    }
}

static void delete_exchange(struct request *request)
{
    const char *name = request_string(request, "name");
    struct actor *actor = control_find_exchange(request, name);

    if (!actor)
        return;
    if (actor_exchange(actor)->declared) {
        request_fail_string(request, "Declared", "name", name);
        return;
    }
    actor_end(actor, "deleted");
    request_done(request);
}

static void report_one_exchange(struct request *request, const char *name)
{
    const struct actor *actor = control_find_exchange(request, name);
    struct reply *reply;

    if (!actor)
        return;
    reply = request_begin(request);
    reply_array(reply, "exchanges");
    report_exchange(reply, actor);
    reply_end_array(reply);
    request_end(request);
}

static void write_exchange(struct request_parts *parts, const void *actor)
{
    if (actor_exchange(actor))
        report_exchange(request_part_item(parts), actor);
}

static void list_exchanges(struct request *request)
{
    const char *name = request_string(request, "name");

    if (name)
        report_one_exchange(request, name);
    else
        request_list_table(request, "exchanges", &request->context->messages->actors,
                           write_exchange);
}

/* The cursor is the sequence of the last subscription listed; they are sorted by it. */
struct subscriptions {
    struct request_parts parts;
    struct list_cursor at;
    uint64_t exchange; /* reference */
};

#define subscriptions_of(pointer) list_entry(pointer, struct subscriptions, parts)

static bool step_subscriptions(struct request_parts *parts)
{
    struct subscriptions *all = subscriptions_of(parts);
    const struct actor *actor = actor_get(parts->request->context->messages, all->exchange);
    const struct exchange_subscription *subscription;

    if (!actor || !all->at.at || all->at.at == &actor_exchange(actor)->subscriptions)
        return false;
    subscription = list_entry(all->at.at, struct exchange_subscription, link);
    list_cursor_advance(&all->at);
    if (subscription->sequence > parts->cursor) {
        parts->cursor = subscription->sequence;
        report_subscription(request_part_item(parts), actor, subscription);
    }
    return true;
}

static void free_subscriptions(struct request_parts *parts)
{
    list_cursor_end(&subscriptions_of(parts)->at);
    free(subscriptions_of(parts));
}

static void list_subscriptions(struct request *request)
{
    struct actor *actor = control_find_exchange(request, request_string(request, "exchange"));
    struct subscriptions *all = actor ? request_allocate(request, sizeof(*all)) : NULL;

    if (!all)
        return;
    all->parts.step = step_subscriptions;
    all->parts.free = free_subscriptions;
    all->exchange = actor->reference;
    list_cursor_begin(&all->at, &actor_exchange(actor)->cursors,
                      &actor_exchange(actor)->subscriptions, false);
    request_in_pages(request, &all->parts, "subscriptions");
}

const struct request_method control_actor_methods[] = {
    {"Lookup", lookup, .changes = false},
    {"ListActors", list_actors, .changes = false},
    {"Pause", set_paused, .changes = true},
    {"Resume", set_paused, .changes = true},
    {"SetMessageLog", set_message_log, .changes = true},
    {"Subscribe", subscribe, .changes = true},
    {"Unsubscribe", unsubscribe, .changes = true},
    {"CreateExchange", create_exchange, .changes = true, .begins = true},
    {"DeleteExchange", delete_exchange, .changes = true},
    {"ListExchanges", list_exchanges, .changes = false},
    {"ListSubscriptions", list_subscriptions, .changes = false},
    {0},
};
