/* SPDX-License-Identifier: MIT */

/* The verbs actors, exchanges, subscribe and unsubscribe. */

#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/listing.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <string.h>

static const struct list_column actor_columns[] = {
    {"ACTOR", "{name}", LIST_LEFT},
    {"KIND", "{kind}", LIST_LEFT},
    {"STATE", "[{paused}paused|{ready}ready|{ready=false}down]", LIST_LEFT},
    {"WAITING", "{waiting:count}", LIST_RIGHT},
    {"ACCEPTED", "{accepted:count}", LIST_RIGHT},
    {"DEAD", "[{dead>0}" RED "]{dead:count}" PLAIN, LIST_RIGHT},
    {"NAMES", "{names:first}[{names>1} ...]", LIST_LEFT},
    {0},
};

int verb_actors(struct invocation *invocation)
{
    static const struct listing listing = {.method = CALL_ACTORS "ListActors",
                                           .array = "actors",
                                           .none = "No actors.",
                                           .columns = actor_columns};

    return listing_run(invocation, &listing,
                       json_pack("{s:s*, s:s*}", "under", invocation_operand(invocation, 0), "kind",
                                 invocation->options.kind),
                       invocation->options.limit);
}

static const struct list_column exchange_columns[] = {
    {"EXCHANGE", "{name}", LIST_LEFT},
    {"KIND", "{kind:enum}[{paused}, paused]", LIST_LEFT},
    {"SUBSCRIPTIONS", "{subscriptions:count}", LIST_RIGHT},
    {"ACCEPTED", "{accepted:count}", LIST_RIGHT},
    {"DESCRIPTION", "{description}", LIST_LEFT},
    {0},
};

static const struct list_column subscriber_columns[] = {
    {"SUBSCRIBER", "{actor}", LIST_LEFT},
    {"TYPE", "[{type}|(all)]", LIST_LEFT},
    {"KEY", "[{key}|{key=}|(any)]", LIST_LEFT},
    {0},
};

static int list_exchanges(struct invocation *invocation)
{
    static const struct listing listing = {.method = CALL_ACTORS "ListExchanges",
                                           .array = "exchanges",
                                           .none = "No exchanges.",
                                           .columns = exchange_columns};

    return listing_run(invocation, &listing, json_object(), 0);
}

static void show_exchange(const struct invocation *invocation, const json_t *exchange)
{
    const json_t *subscribers = json_object_get(exchange, "subscriptions");
    const usec_t now = clock_realtime();

    list_print(&invocation->out, "", exchange_columns, json_object_get(exchange, "exchanges"), now);
    if (json_array_size(subscribers) == 0)
        return;
    putchar('\n');
    list_print(&invocation->out, "", subscriber_columns, subscribers, now);
}

/* Prints the exchange with all its subscriptions as one document. */
static int print_exchange(struct invocation *invocation, const char *name)
{
    json_auto_t *exchange = NULL, *subscriptions = NULL;
    int r = call(invocation, CALL_ACTORS "ListExchanges", json_pack("{s:s}", "name", name), false,
                 &exchange);

    if (r == EXIT_OK)
        r = pages_collect(invocation, CALL_ACTORS "ListSubscriptions",
                          json_pack("{s:s}", "exchange", name), "subscriptions", 0, &subscriptions);
    if (r == EXIT_OK && json_object_update(exchange, subscriptions) < 0)
        r = call_no_memory();
    return r == EXIT_OK ? output_reply(invocation, exchange, show_exchange) : r;
}

int verb_exchanges(struct invocation *invocation)
{
    const char *what = invocation_operand(invocation, 0), *name = invocation_operand(invocation, 1),
               *kind = invocation_operand(invocation, 2);

    if (!what || (strcmp(what, "list") == 0 && !name))
        return list_exchanges(invocation);
    if (strcmp(what, "show") == 0 && name && !kind)
        return print_exchange(invocation, name);
    if (strcmp(what, "delete") == 0 && name && !kind)
        return call_print(invocation, CALL_ACTORS "DeleteExchange",
                          json_pack("{s:s}", "name", name), false, NULL);
    if (strcmp(what, "create") == 0 && kind)
        return call_print(invocation, CALL_ACTORS "CreateExchange",
                          json_pack("{s:s, s:o}", "name", name, "kind", field_enum_new(kind)),
                          false, NULL);
    complain("usage: troupectl exchanges [list | show NAME | create NAME KIND | delete NAME]");
    return EXIT_USAGE;
}

static json_t *subscription(struct invocation *invocation)
{
    return json_pack("{s:s, s:s, s:s*, s:s*}", "exchange", invocation_operand(invocation, 0),
                     "actor", invocation_operand(invocation, 1), "type",
                     invocation_operand(invocation, 2), "key",
                     (const char *)invocation->options.job.key);
}

int verb_subscribe(struct invocation *invocation)
{
    return call_print(invocation, CALL_ACTORS "Subscribe", subscription(invocation), false, NULL);
}

int verb_unsubscribe(struct invocation *invocation)
{
    const char *exchange = invocation_operand(invocation, 0);
    json_auto_t *reply = NULL;
    int r = call(invocation, CALL_ACTORS "Unsubscribe", subscription(invocation), false, &reply);

    if (r == EXIT_OK)
        r = output_reply(invocation, reply, NULL);
    if (r != EXIT_OK || field_true(reply, "existed"))
        return r;
    complain("'%s' has no such subscription to '%s'; 'troupectl exchanges show %s' lists them",
             invocation_operand(invocation, 1), exchange, exchange);
    return EXIT_NOT_FOUND;
}
