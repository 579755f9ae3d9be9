/* SPDX-License-Identifier: MIT */

/* Records about exchanges and subscriptions. */

#include "supervisor/message/request/actor-request-private.h"

#include "shared/protocol/protocol-requests.h"
#include "supervisor/channel/answer.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/exchange/exchange-actor.h"
#include "supervisor/message/message-context.h"
#include <errno.h>
#include <string.h>

static struct exchange *find(const struct actor *actor, uint64_t reference)
{
    const struct actor *found = actor_get(&actor->context->actors, reference);

    return found ? actor_exchange(found) : NULL;
}

int actor_request_on_subscription(struct actor *actor, const struct ring_record *record)
{
    char type[TOPIC_TYPE_MAX], key[TOPIC_KEY_MAX];
    struct exchange_subscriber *subscriber = &actor_self(actor)->subscriptions;
    struct endpoint *endpoint = actor->inbox.endpoint;
    struct protocol_subscription wanted;
    struct exchange *exchange;
    int r;

    r = protocol_get_subscription(record->body, record->size, &wanted);
    if (r < 0)
        return r;
    if (wanted.topic.type_size > 0)
        memcpy(type, wanted.topic.type, wanted.topic.type_size);
    if (wanted.topic.key_size > 0)
        memcpy(key, wanted.topic.key, wanted.topic.key_size);
    wanted.topic.type = type;
    if (wanted.topic.key)
        wanted.topic.key = key;
    if (!topic_type_valid(type, wanted.topic.type_size))
        return answer_refuse(endpoint, wanted.cookie, EINVAL,
                             "malformed type: at most 128 characters of A-Z a-z 0-9 . _ -");
    exchange = find(actor, wanted.exchange);
    if (!exchange)
        return answer_refuse(endpoint, wanted.cookie, ENOENT, "no such exchange");
    if (record->kind == PROTOCOL_UNSUBSCRIBE)
        return answer_value(endpoint, wanted.cookie,
                            exchange_unsubscribe(exchange, subscriber, &wanted.topic));
    r = exchange_subscribe(exchange, subscriber, &wanted.topic);
    if (r < 0)
        return answer_errno(endpoint, wanted.cookie, r);
    if (r != 0)
        return answer_refuse(endpoint, wanted.cookie, EBUSY,
                             "the exchange has too many subscriptions");
    return answer_value(endpoint, wanted.cookie, 1);
}

int actor_request_on_exchange(struct actor *actor, const struct ring_record *record)
{
    char name[PROTOCOL_ACTOR_NAME_MAX + 1];
    struct protocol_exchange wanted;
    struct actor *exchange;
    int r;

    r = protocol_get_exchange(record->body, record->size, &wanted);
    if (r < 0)
        return r;
    memcpy(name, wanted.name, wanted.name_size);
    name[wanted.name_size] = '\0';
    r = exchange_actor_new(&exchange, actor->context, name, wanted.type);
    if (r != 0)
        return actor_request_refuse_name(actor, wanted.cookie, r);
    actor_exchange(exchange)->creator = actor_self(actor)->reference;
    return answer_value(actor->inbox.endpoint, wanted.cookie, exchange->reference);
}

int actor_request_on_exchange_delete(struct actor *actor, const struct ring_record *record)
{
    const struct actor *owner = actor_request_owner(actor);
    struct endpoint *endpoint = actor->inbox.endpoint;
    struct protocol_by_reference by;
    struct exchange *exchange;
    struct actor *found;
    int r;

    r = protocol_get_by_reference(record->body, record->size, &by);
    if (r < 0)
        return r;
    found = actor_get(&actor->context->actors, by.reference);
    exchange = find(actor, by.reference);
    if (!exchange)
        return answer_refuse(endpoint, by.cookie, ENOENT, "no such exchange");
    if (exchange->declared)
        return answer_refuse(endpoint, by.cookie, EPERM,
                             "a file declares it: remove that, and reload");
    if (owner && exchange->creator != owner->reference)
        return answer_refuse(endpoint, by.cookie, EPERM, "another actor made it");
    actor_end(found, "it was deleted");
    return answer_value(endpoint, by.cookie, 1);
}
