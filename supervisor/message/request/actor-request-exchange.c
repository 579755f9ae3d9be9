/* SPDX-License-Identifier: MIT */

/* Requests about exchanges and subscriptions. */

#include "supervisor/message/actor-end.h"
#include "supervisor/message/request/actor-request-private.h"

#include "supervisor/channel/endpoint.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/exchange/exchange-actor.h"
#include "supervisor/message/message-context.h"
#include <errno.h>

static struct exchange *find(const struct actor *actor, uint64_t reference)
{
    const struct actor *found = actor_get(actor->context, reference);

    return found ? actor_exchange(found) : NULL;
}

static struct actor_answer subscribe(struct actor *exchange, struct actor *subscriber,
                                     const struct topic *topic)
{
    int r = exchange_actor_admit(exchange, subscriber);

    if (r == EXCHANGE_ACTOR_E_FOREIGN)
        return ANSWER_REFUSE(EPERM, "this group may not subscribe to the exchange: MaySubscribe= "
                                    "in its file does not name it");
    if (r == 0)
        r = exchange_subscribe(actor_exchange(exchange), &subscriber->subscriptions, topic);
    if (r == EXCHANGE_E_FULL)
        return ANSWER_REFUSE(EBUSY, "the exchange has too many subscriptions");
    return r < 0 ? ANSWER_ERROR(r) : ANSWER_VALUE(1);
}

struct actor_answer actor_request_on_subscription(struct actor *actor,
                                                  const struct actor_request *request)
{
    struct exchange *exchange = find(actor, request->subscription.exchange);
    struct exchange_subscriber *subscriber = &actor_self(actor)->subscriptions;
    const struct topic *topic = &request->subscription.topic;

    if (!topic_type_valid(topic->type, topic->type_size))
        return ANSWER_REFUSE(EINVAL, "malformed type: at most 128 characters of A-Z a-z 0-9 . _ -");
    if (!exchange)
        return ANSWER_REFUSE(ENOENT, "no such exchange");
    if (request->kind == PROTOCOL_UNSUBSCRIBE)
        return ANSWER_VALUE(exchange_unsubscribe(exchange, subscriber, topic));
    return subscribe(actor_get(actor->context, request->subscription.exchange), actor_self(actor),
                     topic);
}

struct actor_answer actor_request_on_exchange(struct actor *actor,
                                              const struct actor_request *request)
{
    struct actor *exchange;
    int r = exchange_actor_make(&exchange, actor_self(actor), request->exchange.name,
                                request->exchange.type);

    if (r != 0)
        return actor_request_refuse_name(r);
    return ANSWER_VALUE(exchange->reference);
}

struct actor_answer actor_request_on_exchange_delete(struct actor *actor,
                                                     const struct actor_request *request)
{
    const struct actor *owner = actor_request_owner(actor);
    const struct exchange *exchange = find(actor, request->by_reference.reference);

    if (!exchange)
        return ANSWER_REFUSE(ENOENT, "no such exchange");
    if (exchange->declared)
        return ANSWER_REFUSE(EPERM, "a file declares it: remove the file, and reload");
    if (owner && exchange->creator != owner->reference)
        return ANSWER_REFUSE(EPERM, "another actor created it");
    /* All messages that wait for it become dead letters. */
    endpoint_end_batch(actor->inbox.endpoint);
    actor_end(actor_get(actor->context, request->by_reference.reference), "it was deleted");
    return ANSWER_VALUE(1);
}
