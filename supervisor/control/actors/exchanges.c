/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: exchanges and subscriptions. */

#include "supervisor/control/actors/actors.h"

#include "supervisor/control/actors/report-actor.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/list.h"
#include "supervisor/control/target.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/exchange/exchange-actor.h"
#include "supervisor/message/message-context.h"

#include <errno.h>
#include <stdlib.h>

struct subscription_parameters {
    const char *exchange, *actor, *type;
    struct varlink_bytes key;
};

struct subscription_wanted {
    struct exchange *exchange;
    struct exchange_subscriber *subscriber;
    struct topic topic;
};

static bool take_subscription(struct request *request, struct subscription_wanted *ret)
{
    static const struct varlink_parameter table[] = {
        {"exchange", VARLINK_STRING, true, offsetof(struct subscription_parameters, exchange)},
        {"actor", VARLINK_STRING, true, offsetof(struct subscription_parameters, actor)},
        {"type", VARLINK_STRING, false, offsetof(struct subscription_parameters, type)},
        {"key", VARLINK_BYTES, false, offsetof(struct subscription_parameters, key)},
        {0},
    };
    struct subscription_parameters parameters = {0};
    struct actor *exchange, *actor;

    if (!request_take(request, table, &parameters) ||
        !control_take_topic(request, parameters.type, &parameters.key, &ret->topic))
        return false;
    exchange = control_find_exchange(request, parameters.exchange);
    if (!exchange)
        return false;
    actor = control_find_actor(request, parameters.actor);
    if (!actor)
        return false;
    ret->exchange = exchange->owner;
    ret->subscriber = &actor->subscriptions;
    return true;
}

void control_subscribe(struct request *request)
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

void control_unsubscribe(struct request *request)
{
    struct subscription_wanted wanted;
    bool existed;

    if (!take_subscription(request, &wanted))
        return;
    existed = exchange_unsubscribe(wanted.exchange, wanted.subscriber, &wanted.topic);
    reply_bool(request_begin(request), "existed", existed);
    request_end(request);
}

/* ---- exchanges ---- */

struct create_parameters {
    const char *name, *kind;
};

static void answer_created(struct request *request, const char *name, int r,
                           const struct actor *actor)
{
    switch (r) {
    case 0:
        reply_reference(request_begin(request), "reference", actor->reference);
        request_end(request);
        break;
    case ACTOR_E_EXISTS:
        request_fail_string(request, "NameExists", "name", name);
        break;
    case ACTOR_E_BAD_NAME:
        control_refuse_option(request, "name", ACTOR_NAME_RULE);
        break;
    case ACTOR_E_TOO_MANY:
        request_fail_string(request, "TooMany", "what", "exchanges");
        break;
    default:
        request_internal(request, r);
    }
}

void control_create_exchange(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"name", VARLINK_STRING, true, offsetof(struct create_parameters, name)},
        {"kind", VARLINK_STRING, true, offsetof(struct create_parameters, kind)},
        {0},
    };
    struct create_parameters parameters = {0};
    struct actor *actor = NULL;
    enum exchange_kind kind;
    int r;

    if (!request_take(request, table, &parameters) || control_refuse_stopping(request))
        return;
    if (exchange_kind_from_string(&kind, parameters.kind) < 0) {
        control_refuse_option(request, "kind",
                              "single, typed_single, typed_multi, routing_key, pattern");
        return;
    }
    r = exchange_actor_new(&actor, request->context->messages, parameters.name, kind);
    answer_created(request, parameters.name, r, actor);
}

struct name_parameters {
    const char *name;
};

void control_delete_exchange(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"name", VARLINK_STRING, true, offsetof(struct name_parameters, name)},
        {0},
    };
    struct name_parameters parameters = {0};
    struct actor *actor;

    if (!request_take(request, table, &parameters))
        return;
    actor = control_find_exchange(request, parameters.name);
    if (!actor)
        return;
    if (actor_exchange(actor)->declared) {
        request_fail_string(request, "Declared", "name", parameters.name);
        return;
    }
    actor_end(actor, "deleted");
    request_done(request);
}

struct exchanges_parameters {
    const char *name;
    struct control_page page;
};

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
    const struct actor_table *table = &list->parts.request->context->messages->actors;
    const struct actor *actor;

    if (list->cursor >= table->handles.n_entries)
        return false;
    actor = table->handles.entries[list->cursor++].object;
    if (actor && actor_exchange(actor))
        report_exchange(control_list_item(list), actor);
    return true;
}

void control_list_exchanges(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"name", VARLINK_STRING, false, offsetof(struct exchanges_parameters, name)},
        CONTROL_PAGE_ROWS(struct exchanges_parameters),
        {0},
    };
    struct exchanges_parameters parameters = {0};
    struct control_list *list;

    if (!request_take(request, table, &parameters) || !control_take_page(request, &parameters.page))
        return;
    if (parameters.name) {
        report_one_exchange(request, parameters.name);
        return;
    }
    list = calloc(1, sizeof(*list));
    if (!list) {
        request_internal(request, -ENOMEM);
        return;
    }
    list->step = step_exchanges;
    control_list(request, list, "exchanges", &parameters.page);
}

/* ---- subscriptions of an exchange ---- */

struct subscriptions_parameters {
    const char *exchange;
    struct control_page page;
};

/* The cursor is the sequence of the last subscription listed; they are sorted by it. */
struct subscriptions {
    struct control_list list;
    struct list_cursor at;
    uint64_t exchange; /* reference */
};

#define subscriptions_of(pointer) list_entry(pointer, struct subscriptions, list)

static bool step_subscriptions(struct control_list *list)
{
    const struct actor_table *table = &list->parts.request->context->messages->actors;
    struct subscriptions *all = subscriptions_of(list);
    const struct actor *actor = actor_get(table, all->exchange);
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

void control_list_subscriptions(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"exchange", VARLINK_STRING, true, offsetof(struct subscriptions_parameters, exchange)},
        CONTROL_PAGE_ROWS(struct subscriptions_parameters),
        {0},
    };
    struct subscriptions_parameters parameters = {0};
    struct subscriptions *all;
    struct actor *actor;

    if (!request_take(request, table, &parameters) || !control_take_page(request, &parameters.page))
        return;
    actor = control_find_exchange(request, parameters.exchange);
    if (!actor)
        return;
    all = calloc(1, sizeof(*all));
    if (!all) {
        request_internal(request, -ENOMEM);
        return;
    }
    all->list.step = step_subscriptions;
    all->list.free = free_subscriptions;
    all->exchange = actor->reference;
    list_cursor_begin(&all->at, &actor_exchange(actor)->cursors,
                      &actor_exchange(actor)->subscriptions, false);
    control_list(request, &all->list, "subscriptions", &parameters.page);
}
