/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor-request-private.h"

#include "shared/protocol/protocol-requests.h"
#include "supervisor/channel/answer.h"
#include "supervisor/context.h"
#include "supervisor/message/exchange.h"
#include "supervisor/message/router.h"
#include <errno.h>
#include <string.h>

int actor_request_on_subscription(struct actor *actor, const struct ring_record *record)
{
    char type[TOPIC_TYPE_MAX], key[TOPIC_KEY_MAX];
    struct protocol_subscription wish;
    struct actor *exchange, *self = actor_self(actor);
    int r;

    r = protocol_get_subscription(record->body, record->size, &wish);
    if (r < 0)
        return r;
    if (wish.topic.type_size > 0)
        memcpy(type, wish.topic.type, wish.topic.type_size);
    if (wish.topic.key_size > 0)
        memcpy(key, wish.topic.key, wish.topic.key_size);
    wish.topic.type = type;
    if (wish.topic.key)
        wish.topic.key = key;
    exchange = actor_get(&actor->context->actors, wish.exchange);
    if (!topic_type_valid(type, wish.topic.type_size))
        return answer_refuse(actor->endpoint, wish.cookie, EINVAL,
                             "malformed type: at most 128 characters of A-Z a-z 0-9 . _ -");
    if (!exchange || exchange->kind != ACTOR_EXCHANGE)
        return answer_refuse(actor->endpoint, wish.cookie, ENOENT, "no such exchange");
    if (record->kind == PROTOCOL_UNSUBSCRIBE)
        return answer_value(
            actor->endpoint, wish.cookie,
            exchange_unsubscribe(exchange->exchange, &self->subscriptions, &wish.topic));
    r = exchange_subscribe(exchange->exchange, &self->subscriptions, &wish.topic);
    if (r < 0)
        return answer_errno(actor->endpoint, wish.cookie, r);
    if (r != 0)
        return answer_refuse(actor->endpoint, wish.cookie, EBUSY,
                             "the exchange has too many subscriptions");
    return answer_value(actor->endpoint, wish.cookie, 1);
}

int actor_request_on_exchange(struct actor *actor, const struct ring_record *record)
{
    char name[PROTOCOL_ACTOR_NAME_MAX + 1];
    struct protocol_exchange wish;
    struct actor *exchange;
    int r;

    r = protocol_get_exchange(record->body, record->size, &wish);
    if (r < 0)
        return r;
    memcpy(name, wish.name, wish.name_size);
    name[wish.name_size] = '\0';
    r = router_add_exchange(actor->context, name, wish.type, &exchange);
    if (r != 0)
        return actor_request_refuse_name(actor, wish.cookie, r);
    exchange->owner = actor_self(actor)->reference;
    return answer_value(actor->endpoint, wish.cookie, exchange->reference);
}

int actor_request_on_exchange_delete(struct actor *actor, const struct ring_record *record)
{
    const struct actor *owner = actor_request_owner(actor);
    struct protocol_by_reference by;
    struct actor *exchange;
    int r;

    r = protocol_get_by_reference(record->body, record->size, &by);
    if (r < 0)
        return r;
    exchange = actor_get(&actor->context->actors, by.reference);
    if (!exchange || exchange->kind != ACTOR_EXCHANGE)
        return answer_refuse(actor->endpoint, by.cookie, ENOENT, "no such exchange");
    if (exchange->exchange_declared)
        return answer_refuse(actor->endpoint, by.cookie, EPERM,
                             "a file declares it: remove that, and reload");
    if (owner && exchange->owner != owner->reference)
        return answer_refuse(actor->endpoint, by.cookie, EPERM, "another actor made it");
    router_remove(exchange, "it was deleted");
    return answer_value(actor->endpoint, by.cookie, 1);
}
