/* SPDX-License-Identifier: MIT */

#include "supervisor/control/actors/actors.h"

#include "shared/protocol/trace.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/jobs/jobs.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/exchange/exchange.h"
#include "supervisor/message/message-context.h"
#include <errno.h>
#include <string.h>

bool control_take_topic(struct request *request, struct topic *ret)
{
    const struct varlink_bytes key = varlink_bytes(&request->parameters, "key");
    const char *type = request_string(request, "type");

    if (!type)
        type = "";
    if (!topic_type_valid(type, strlen(type)))
        return request_refuse(request, "type", CONTROL_TYPE_ALLOWED);
    *ret = (struct topic){.type = type,
                          .type_size = (uint32_t)strlen(type),
                          .key = key.data,
                          .key_size = (uint32_t)key.size};
    return true;
}

/* Why a group is not an actor; NULL = there is no such group, or it is one. */
static const char *why_no_actor(const struct group *group)
{
    if (!group || group->config->type == CONFIG_ACTOR)
        return NULL;
    return "it is a plain service (Type=service), which takes neither jobs nor messages";
}

void control_refuse_actor(struct request *request, const char *name)
{
    struct registry *registry = request->context->registry;
    const char *reason = why_no_actor(registry_find(registry, name));

    request_fail_strings(request, "NoSuchActor", "name", name, reason ? "reason" : "nearest",
                         reason ? reason : registry_nearest(registry, name));
}

struct actor *control_find_actor(struct request *request, const char *name)
{
    struct actor *actor = actor_by_address(request->context->messages, name);

    if (!actor)
        control_refuse_actor(request, name);
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

static const struct routing_refusal {
    const char *error, *field; /* of io.troupe.Actors; NULL = the reply has other fields */
    const char *text;
} ROUTING_REFUSALS[] = {
    [ROUTER_E_GONE] = {NULL, NULL, "the recipient is gone"},
    [ROUTER_E_FULL] = {"MailboxFull", "name", "the recipient's mailbox is full"},
    [ROUTER_E_NO_MATCH] = {"NoMatch", "exchange", "no subscription of the exchange matches it"},
    [ROUTER_E_NO_KEY] = {NULL, NULL,
                         "the group has Cells=by-key, and the message has no key that can name a "
                         "cell"},
    [ROUTER_E_CELLS] = {NULL, NULL, "the group has as many cells as CellsMax= allows"},
    [ROUTER_E_MEMORY] = {NULL, NULL, "the supervisor is out of memory or descriptors"},
};

const char *control_routing_text(int result)
{
    return result > 0 ? ROUTING_REFUSALS[result].text : strerror(-result);
}

void control_refuse_routing(struct request *request, const char *to, int result)
{
    const struct group *group = registry_group_of(request->context->registry, to);
    struct reply *reply;

    if (result == ROUTER_E_GONE) {
        control_refuse_actor(request, to);
    } else if (result == ROUTER_E_NO_KEY) {
        request_refuse(request, "key", CONTROL_KEY_ALLOWED);
    } else if (result == ROUTER_E_CELLS && !group) {
        request_refuse(request, "key",
                       "that of a cell: the group behind the exchange has as many as CellsMax= "
                       "allows");
    } else if (result == ROUTER_E_CELLS) {
        reply = request_begin_error(request, "TooManyCells");
        control_report_cells(reply, group);
        request_end(request);
    } else if (result < 0 || result == ROUTER_E_MEMORY) {
        request_internal(request, result < 0 ? result : -ENOMEM);
    } else {
        request_fail_string(request, ROUTING_REFUSALS[result].error, ROUTING_REFUSALS[result].field,
                            to);
    }
}

/* ---- replies ---- */

static void report_names(struct reply *reply, const struct actor *actor)
{
    reply_array(reply, "names");
    list_for_each_entry (name, &actor->names, struct actor_name, link)
        reply_string(reply, NULL, name->name);
    reply_end_array(reply);
}

void report_actor(struct reply *reply, const char *key, const struct actor *actor)
{
    const struct actor_counters *counters = &actor->counters;

    reply_object(reply, key);
    reply_string(reply, "name", actor->name);
    reply_reference(reply, actor->reference);
    reply_string(reply, "kind", actor_kind_to_string(actor->class->kind));
    if (actor_is(actor, ACTOR_SLOT) || actor_is(actor, ACTOR_CLIENT))
        reply_bool(reply, "ready", actor->up);
    reply_bool(reply, "paused", actor->paused);
    reply_uint(reply, "waiting", actor->mailbox.n);
    reply_uint(reply, "waiting_bytes", actor->mailbox.bytes);
    reply_uint(reply, "stashed", actor->mailbox.n_stashed);
    reply_uint(reply, "accepted", counters->accepted);
    reply_uint(reply, "delivered", counters->delivered);
    reply_uint(reply, "consumed", delivery_consumed(actor));
    reply_uint(reply, "dead", counters->dead);
    reply_uint(reply, "redelivered", counters->redelivered);
    reply_uint(reply, "asks", actor->n_asks);
    reply_uint(reply, "subscriptions", actor->subscriptions.n_subscriptions);
    report_names(reply, actor);
    reply_end_object(reply);
}

void report_topic(struct reply *reply, const struct topic *topic)
{
    reply_text(reply, "type", topic->type, topic->type_size);
    if (topic->key)
        reply_text(reply, "key", topic->key, topic->key_size);
}

void report_subscription(struct reply *reply, const struct actor *exchange,
                         const struct exchange_subscription *subscription)
{
    reply_object(reply, NULL);
    reply_string(reply, "exchange", exchange->name);
    reply_string(reply, "actor", actor_name_of(exchange->context, subscription->subscriber->actor));
    report_topic(reply, &subscription->topic);
    reply_end_object(reply);
}

void report_exchange(struct reply *reply, const struct actor *actor)
{
    const struct exchange *exchange = actor_exchange(actor);

    reply_object(reply, NULL);
    reply_string(reply, "name", actor->name);
    reply_reference(reply, actor->reference);
    reply_string(reply, "kind", exchange_kind_to_string(exchange->kind));
    reply_bool(reply, "declared", exchange->declared);
    reply_bool(reply, "paused", actor->paused);
    reply_string(reply, "description", exchange->description ? exchange->description : "");
    reply_uint(reply, "accepted", actor->counters.accepted);
    reply_uint(reply, "dead", actor->counters.dead);
    reply_uint(reply, "subscriptions", exchange->n_subscriptions);
    reply_end_object(reply);
}

/* How many bytes of stacks a letter reports, of its last deaths. */
#define STACKS_MAX (TRACE_TEXT_MAX + TRACE_TEXT_MAX / 2)

/* Returns the first of its reports that is shown with its stack. */
static size_t first_with_stack(const struct dead_letter *letter)
{
    size_t i = letter->n_deaths, size = 0;

    while (i > 0 && size + letter->deaths[i - 1]->stack_size <= STACKS_MAX)
        size += letter->deaths[--i]->stack_size;
    return i;
}

static void report_details(struct reply *reply, const struct request *request,
                           const struct dead_letter *letter)
{
    const size_t first = first_with_stack(letter);

    if (!letter->payload_dropped && access_letter(request, letter))
        (void)report_payload(reply, "payload", &letter->payload, REPORT_SINGLE_MAX);
    reply_array(reply, "deaths");
    for (size_t i = 0; i < letter->n_deaths; i++)
        report_death(reply, NULL, request, letter->deaths[i], i >= first);
    reply_end_array(reply);
}

void report_dead_letter(struct reply *reply, const char *key, const struct request *request,
                        const struct dead_letter *letter, bool whole)
{
    const bool has_code = letter->reason == DEAD_ERROR || letter->reason == DEAD_JOB;

    reply_object(reply, key);
    reply_uint(reply, "id", letter->id);
    reply_string(reply, "queue",
                 dead_letter_queue_of(letter->reason) == DEAD_ERRORS ? "errors" : "dead_letters");
    reply_string(reply, "reason", dead_letter_reason_to_string(letter->reason));
    reply_uint(reply, "at", letter->at);
    reply_uint_if(reply, "sent_at", letter->sent_at);
    reply_string_if(reply, "sender", letter->sender);
    reply_string_if(reply, "recipient", letter->recipient);
    report_topic(reply, &letter->topic);
    reply_uint_if(reply, "message", letter->message);
    reply_string_if(reply, "job", letter->job);
    if (has_code)
        reply_int(reply, "code", letter->code);
    if (access_letter(request, letter))
        reply_string_if(reply, "text", letter->text);
    else
        reply_bool(reply, "restricted", true);
    reply_uint_if(reply, "attempts", letter->attempts);
    reply_uint(reply, "payload_bytes", letter->payload_size);
    reply_bool(reply, "payload_dropped", letter->payload_dropped);
    reply_uint(reply, "n_deaths", letter->n_deaths);
    if (whole)
        report_details(reply, request, letter);
    reply_end_object(reply);
}
