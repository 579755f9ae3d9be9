/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: exchanges and subscriptions. */

#include "supervisor/control/actors/actors.h"

#include "supervisor/control/actors/report-actor.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/paged-list.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/exchange/exchange-actor.h"
#include "supervisor/message/message-context.h"
#include <stdlib.h>

struct exchange_parameters {
    const char *exchange, *actor, *type;
    struct varlink_bytes key;
    struct varlink_int kind;
    struct control_page page;
};

struct subscription_wanted {
    struct exchange *exchange;
    struct exchange_subscriber *subscriber;
    struct topic topic;
};

static bool take_subscription(struct request *request, struct subscription_wanted *ret)
{
    const struct exchange_parameters *given = request->parameters;
    struct actor *exchange, *actor;

    if (!control_take_topic(request, given->type, &given->key, &ret->topic))
        return false;
    exchange = control_find_exchange(request, given->exchange);
    actor = exchange ? control_find_actor(request, given->actor) : NULL;
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
    const struct exchange_parameters *given = request->parameters;
    struct actor *actor = NULL;
    int r = exchange_actor_new(&actor, request->context->messages, given->exchange,
                               (enum exchange_kind)given->kind.value);

    switch (r) {
    case 0:
        reply_reference(request_begin(request), "reference", actor->reference);
        request_end(request);
        break;
    case ACTOR_E_EXISTS:
        request_fail_string(request, "NameExists", "name", given->exchange);
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
    const struct exchange_parameters *given = request->parameters;
    struct actor *actor = control_find_exchange(request, given->exchange);

    if (!actor)
        return;
    if (actor_exchange(actor)->declared) {
        request_fail_string(request, "Declared", "name", given->exchange);
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

/* The cursor is a place in the table of actors. */
static bool step_exchanges(struct control_list *list)
{
    const struct handle_table *table = &list->parts.request->context->messages->actors;
    const struct actor *actor;

    if (list->cursor >= table->n_entries)
        return false;
    actor = table->entries[list->cursor++].object;
    if (actor && actor_exchange(actor))
        report_exchange(control_list_item(list), actor);
    return true;
}

static void list_exchanges(struct request *request)
{
    const struct exchange_parameters *given = request->parameters;
    struct control_list *list;

    if (given->exchange) {
        report_one_exchange(request, given->exchange);
        return;
    }
    list = request_allocate(request, sizeof(*list));
    if (!list)
        return;
    list->step = step_exchanges;
    control_list(request, list, "exchanges", &given->page);
}

/* The cursor is the sequence of the last subscription listed; they are sorted by it. */
struct subscriptions {
    struct control_list list;
    struct list_cursor at;
    uint64_t exchange; /* reference */
};

#define subscriptions_of(pointer) list_entry(pointer, struct subscriptions, list)

static bool step_subscriptions(struct control_list *list)
{
    struct subscriptions *all = subscriptions_of(list);
    const struct actor *actor = actor_get(list->parts.request->context->messages, all->exchange);
    const struct exchange_subscription *subscription;

    if (!actor || !all->at.at || all->at.at == &actor_exchange(actor)->subscriptions)
        return false;
    subscription = list_entry(all->at.at, struct exchange_subscription, link);
    list_cursor_advance(&all->at);
    if (subscription->sequence > list->cursor) {
        list->cursor = subscription->sequence;
        report_subscription(control_list_item(list), actor, subscription);
    }
    return true;
}

static void free_subscriptions(struct control_list *list)
{
    list_cursor_end(&subscriptions_of(list)->at);
    free(subscriptions_of(list));
}

static void list_subscriptions(struct request *request)
{
    const struct exchange_parameters *given = request->parameters;
    struct actor *actor = control_find_exchange(request, given->exchange);
    struct subscriptions *all = actor ? request_allocate(request, sizeof(*all)) : NULL;

    if (!all)
        return;
    all->list.step = step_subscriptions;
    all->list.free = free_subscriptions;
    all->exchange = actor->reference;
    list_cursor_begin(&all->at, &actor_exchange(actor)->cursors,
                      &actor_exchange(actor)->subscriptions, false);
    control_list(request, &all->list, "subscriptions", &given->page);
}

static const struct varlink_parameter subscription_table[] = {
    VARLINK_ROW("exchange", STRING, exchange_parameters, exchange, .required = true),
    VARLINK_ROW("actor", STRING, exchange_parameters, actor, .required = true),
    VARLINK_ROW("type", STRING, exchange_parameters, type),
    CONTROL_KEY_ROW(exchange_parameters, key),
    {0},
};
/* The words of `kind` are in the order of enum exchange_kind. */
static const struct varlink_parameter create_table[] = {
    VARLINK_ROW("name", STRING, exchange_parameters, exchange, .required = true),
    VARLINK_ROW("kind", CHOICE, exchange_parameters, kind, .required = true,
                .allowed = "single, typed_single, typed_multi, routing_key, pattern"),
    {0},
};
static const struct varlink_parameter delete_table[] = {
    VARLINK_ROW("name", STRING, exchange_parameters, exchange, .required = true),
    {0},
};
static const struct varlink_parameter list_table[] = {
    VARLINK_ROW("name", STRING, exchange_parameters, exchange),
    CONTROL_PAGE_ROWS(exchange_parameters),
    {0},
};
static const struct varlink_parameter subscriptions_table[] = {
    VARLINK_ROW("exchange", STRING, exchange_parameters, exchange, .required = true),
    CONTROL_PAGE_ROWS(exchange_parameters),
    {0},
};

const struct request_method control_exchange_methods[] = {
    {"Subscribe", subscribe, subscription_table, .changes = true},
    {"Unsubscribe", unsubscribe, subscription_table, .changes = true},
    {"CreateExchange", create_exchange, create_table, .changes = true, .begins = true},
    {"DeleteExchange", delete_exchange, delete_table, .changes = true},
    {"ListExchanges", list_exchanges, list_table, .changes = false},
    {"ListSubscriptions", list_subscriptions, subscriptions_table, .changes = false},
    {0},
};
