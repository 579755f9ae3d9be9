/* SPDX-License-Identifier: MIT */

/* The verbs actors, exchanges, subscribe and unsubscribe. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/pages.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/table.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <string.h>

static const char *actor_state(const json_t *actor)
{
    if (field_true(actor, "paused"))
        return "paused";
    if (!field_has(actor, "ready"))
        return "";
    return field_true(actor, "ready") ? "ready" : "down";
}

static void show_actors(const struct terminal *terminal, const json_t *actors)
{
    struct table table;

    table_init(&table, 7, "");
    table_add(&table, BOLD "ACTOR" PLAIN);
    table_add(&table, BOLD "KIND" PLAIN);
    table_add(&table, BOLD "STATE" PLAIN);
    table_add(&table, BOLD "WAITING" PLAIN);
    table_add(&table, BOLD "ACCEPTED" PLAIN);
    table_add(&table, BOLD "DEAD" PLAIN);
    table_add(&table, BOLD "NAMES" PLAIN);
    table.right[3] = table.right[4] = table.right[5] = true;
    for (size_t i = 0; i < json_array_size(actors); i++) {
        const json_t *actor = json_array_get(actors, i), *names = json_object_get(actor, "names");
        const uint64_t dead = field_count(actor, "dead");

        table_add(&table, "%s", SAFE(field_text(actor, "name")));
        table_add(&table, "%s", SAFE(field_text(actor, "kind")));
        table_add(&table, "%s", actor_state(actor));
        table_add(&table, "%s", COUNT(field_count(actor, "waiting")));
        table_add(&table, "%s", COUNT(field_count(actor, "accepted")));
        table_add(&table, "%s%s" PLAIN, dead > 0 ? RED : "", COUNT(dead));
        table_add(&table, "%s%s", SAFE(json_string_value(json_array_get(names, 0)) ?: ""),
                  json_array_size(names) > 1 ? " ..." : "");
    }
    table_print(&table, terminal);
    table_deinit(&table);
}

int verb_actors(struct invocation *invocation)
{
    const struct options *options = &invocation->options;
    const json_t *actors;
    json_t *reply;
    int r;

    r = pages_collect(invocation, CALL_ACTORS "ListActors",
                      json_pack("{s:s*, s:s*}", "under", invocation_operand(invocation, 0), "kind",
                                options->kind),
                      "actors", options->limit, NULL, NULL, &reply);
    if (r != EXIT_OK)
        return r;
    actors = json_object_get(reply, "actors");
    if (options->json)
        r = call_print_json(invocation, reply);
    else if (json_array_size(actors) > 0)
        show_actors(&invocation->out, actors);
    else if (!options->quiet)
        terminal_print(&invocation->out, "No actors.");
    pages_remark(invocation, reply, "actors");
    json_decref(reply);
    return r;
}

/* ---- exchanges ---- */

static void show_exchanges(const struct terminal *terminal, const json_t *exchanges)
{
    struct table table;

    table_init(&table, 5, "");
    table_add(&table, BOLD "EXCHANGE" PLAIN);
    table_add(&table, BOLD "KIND" PLAIN);
    table_add(&table, BOLD "SUBSCRIPTIONS" PLAIN);
    table_add(&table, BOLD "ACCEPTED" PLAIN);
    table_add(&table, BOLD "DESCRIPTION" PLAIN);
    table.right[2] = table.right[3] = true;
    for (size_t i = 0; i < json_array_size(exchanges); i++) {
        const json_t *exchange = json_array_get(exchanges, i);

        table_add(&table, "%s", SAFE(field_text(exchange, "name")));
        table_add(&table, "%s%s", SAFE(ENUM(exchange, "kind")),
                  field_true(exchange, "paused") ? ", paused" : "");
        table_add(&table, "%s", COUNT(field_count(exchange, "subscriptions")));
        table_add(&table, "%s", COUNT(field_count(exchange, "accepted")));
        table_add(&table, "%s", SAFE(field_text(exchange, "description")));
    }
    table_print(&table, terminal);
    table_deinit(&table);
}

static void show_subscribers(const struct terminal *terminal, const json_t *subscribers)
{
    struct table table;

    if (json_array_size(subscribers) == 0)
        return;
    putchar('\n');
    table_init(&table, 3, "");
    table_add(&table, BOLD "SUBSCRIBER" PLAIN);
    table_add(&table, BOLD "TYPE" PLAIN);
    table_add(&table, BOLD "KEY" PLAIN);
    for (size_t i = 0; i < json_array_size(subscribers); i++) {
        const json_t *one = json_array_get(subscribers, i);

        table_add(&table, "%s", SAFE(field_text(one, "actor")));
        table_add(&table, "%s", *field_text(one, "type") ? SAFE(field_text(one, "type")) : "(all)");
        table_add(&table, "%s", field_has(one, "key") ? SAFE(field_text(one, "key")) : "(any)");
    }
    table_print(&table, terminal);
    table_deinit(&table);
}

static int list_exchanges(struct invocation *invocation)
{
    const json_t *exchanges;
    json_t *reply;
    int r;

    r = pages_collect(invocation, CALL_ACTORS "ListExchanges", json_object(), "exchanges", 0, NULL,
                      NULL, &reply);
    if (r != EXIT_OK)
        return r;
    exchanges = json_object_get(reply, "exchanges");
    if (invocation->options.json)
        r = call_print_json(invocation, reply);
    else if (json_array_size(exchanges) > 0)
        show_exchanges(&invocation->out, exchanges);
    else if (!invocation->options.quiet)
        terminal_print(&invocation->out, "No exchanges.");
    json_decref(reply);
    return r;
}

/* Returns the exchange with all its subscriptions in one document. */
static int get_exchange(struct invocation *invocation, const char *name, json_t **ret)
{
    json_t *subscriptions;
    int r;

    r = call(invocation, CALL_ACTORS "ListExchanges", json_pack("{s:s}", "name", name), false, ret);
    if (r != EXIT_OK)
        return r;
    r = pages_collect(invocation, CALL_ACTORS "ListSubscriptions",
                      json_pack("{s:s}", "exchange", name), "subscriptions", 0, NULL, NULL,
                      &subscriptions);
    if (r == EXIT_OK) {
        r = json_object_update(*ret, subscriptions) < 0 ? call_no_memory() : EXIT_OK;
        json_decref(subscriptions);
    }
    if (r != EXIT_OK)
        json_decref(*ret);
    return r;
}

static int show_exchange(struct invocation *invocation, const char *name)
{
    json_t *document;
    int r;

    r = get_exchange(invocation, name, &document);
    if (r != EXIT_OK)
        return r;
    if (invocation->options.json) {
        r = call_print_json(invocation, document);
    } else {
        show_exchanges(&invocation->out, json_object_get(document, "exchanges"));
        show_subscribers(&invocation->out, json_object_get(document, "subscriptions"));
    }
    json_decref(document);
    return r;
}

/* Calls a method whose reply is printed with --json only. */
static int order(struct invocation *invocation, const char *method, json_t *parameters)
{
    json_t *reply;
    int r;

    r = call(invocation, method, parameters, false, &reply);
    if (r != EXIT_OK)
        return r;
    if (invocation->options.json)
        r = call_print_json(invocation, reply);
    json_decref(reply);
    return r;
}

int verb_exchanges(struct invocation *invocation)
{
    const char *what = invocation_operand(invocation, 0), *name = invocation_operand(invocation, 1),
               *kind = invocation_operand(invocation, 2);
    json_t *parameters;

    if (!what || (strcmp(what, "list") == 0 && !name))
        return list_exchanges(invocation);
    if (strcmp(what, "show") == 0 && name && !kind)
        return show_exchange(invocation, name);
    if (strcmp(what, "delete") == 0 && name && !kind)
        return order(invocation, CALL_ACTORS "DeleteExchange", json_pack("{s:s}", "name", name));
    if (strcmp(what, "create") == 0 && kind) {
        parameters = json_pack("{s:s, s:o}", "name", name, "kind", field_enum_new(kind));
        return order(invocation, CALL_ACTORS "CreateExchange", parameters);
    }
    complain("usage: troupectl exchanges [list | show NAME | create NAME KIND | delete NAME]");
    return EXIT_USAGE;
}

/* ---- subscriptions ---- */

static json_t *subscription(struct invocation *invocation)
{
    return json_pack("{s:s, s:s, s:s*, s:s*}", "exchange", invocation_operand(invocation, 0),
                     "actor", invocation_operand(invocation, 1), "type",
                     invocation_operand(invocation, 2), "key", invocation->options.key);
}

int verb_subscribe(struct invocation *invocation)
{
    return order(invocation, CALL_ACTORS "Subscribe", subscription(invocation));
}

int verb_unsubscribe(struct invocation *invocation)
{
    json_t *reply;
    int r;

    r = call(invocation, CALL_ACTORS "Unsubscribe", subscription(invocation), false, &reply);
    if (r != EXIT_OK)
        return r;
    if (invocation->options.json)
        r = call_print_json(invocation, reply);
    if (r == EXIT_OK && !field_true(reply, "existed")) {
        complain("%s has no such subscription to %s; 'troupectl exchanges show %s' lists them",
                 invocation_operand(invocation, 1), invocation_operand(invocation, 0),
                 invocation_operand(invocation, 0));
        r = EXIT_NOT_FOUND;
    }
    json_decref(reply);
    return r;
}
