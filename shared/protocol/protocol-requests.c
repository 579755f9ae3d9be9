/* SPDX-License-Identifier: MIT */
#include "shared/protocol/protocol-requests.h"

#include "shared/protocol/protocol-parts.h"

int protocol_put_named(void *body, uint32_t size, const struct protocol_named *named)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, named->cookie);
    part_put_bounded(&writer, named->name, named->name_size, PROTOCOL_ACTOR_NAME_MAX);
    return (int)wire_written(&writer);
}

int protocol_get_named(const void *body, uint32_t size, struct protocol_named *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->cookie = wire_get_u64(&reader);
    ret->name_size = part_get_text(&reader, &ret->name, PROTOCOL_ACTOR_NAME_MAX);
    return wire_end(&reader);
}

int protocol_put_by_reference(void *body, uint32_t size, const struct protocol_by_reference *by)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, by->cookie);
    wire_put_u64(&writer, by->reference);
    return (int)wire_written(&writer);
}

int protocol_get_by_reference(const void *body, uint32_t size, struct protocol_by_reference *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->cookie = wire_get_u64(&reader);
    ret->reference = wire_get_u64(&reader);
    return wire_end(&reader);
}

int protocol_put_timer(void *body, uint32_t size, const struct protocol_timer *timer)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, timer->cookie);
    wire_put_u64(&writer, timer->to);
    wire_put_u64(&writer, timer->at);
    wire_put_u64(&writer, timer->period);
    part_put_flags(&writer, timer->flags);
    protocol_write_content(&writer, &timer->content);
    return (int)wire_written(&writer);
}

int protocol_get_timer(const void *body, uint32_t size, struct protocol_timer *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->cookie = wire_get_u64(&reader);
    ret->to = wire_get_u64(&reader);
    ret->at = wire_get_u64(&reader);
    ret->period = wire_get_u64(&reader);
    ret->flags = part_get_flags(&reader, PROTOCOL_TIMER_REALTIME);
    ret->content = protocol_read_content(&reader);
    return wire_end(&reader);
}

int protocol_put_timer_cancel(void *body, uint32_t size, const struct protocol_timer_cancel *what)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, what->cookie);
    wire_put_u64(&writer, what->timer);
    wire_put_u64(&writer, what->to);
    part_put_bounded(&writer, what->type, what->type_size, TOPIC_TYPE_MAX);
    return (int)wire_written(&writer);
}

int protocol_get_timer_cancel(const void *body, uint32_t size, struct protocol_timer_cancel *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->cookie = wire_get_u64(&reader);
    ret->timer = wire_get_u64(&reader);
    ret->to = wire_get_u64(&reader);
    ret->type_size = part_get_text(&reader, &ret->type, TOPIC_TYPE_MAX);
    return wire_end(&reader);
}

int protocol_put_subscription(void *body, uint32_t size, const struct protocol_subscription *what)
{
    struct wire_writer writer = wire_writer(body, size);
    const struct topic *topic = &what->topic;

    wire_put_u64(&writer, what->cookie);
    wire_put_u64(&writer, what->exchange);
    part_put_bounded(&writer, topic->type, topic->type_size, TOPIC_TYPE_MAX);
    wire_put_u8(&writer, topic->key != NULL);
    part_put_bounded(&writer, topic->key, topic->key ? topic->key_size : 0, TOPIC_KEY_MAX);
    return (int)wire_written(&writer);
}

int protocol_get_subscription(const void *body, uint32_t size, struct protocol_subscription *ret)
{
    struct wire_reader reader = wire_reader(body, size);
    bool has_key;

    ret->cookie = wire_get_u64(&reader);
    ret->exchange = wire_get_u64(&reader);
    ret->topic.type_size = part_get_text(&reader, &ret->topic.type, TOPIC_TYPE_MAX);
    has_key = part_get_bool(&reader);
    ret->topic.key_size = part_get_text(&reader, &ret->topic.key, has_key ? TOPIC_KEY_MAX : 0);
    if (!has_key)
        ret->topic.key = NULL;
    return wire_end(&reader);
}

int protocol_put_exchange(void *body, uint32_t size, const struct protocol_exchange *exchange)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, exchange->cookie);
    wire_put_u8(&writer, (uint8_t)exchange->type);
    part_put_bounded(&writer, exchange->name, exchange->name_size, PROTOCOL_ACTOR_NAME_MAX);
    return (int)wire_written(&writer);
}

int protocol_get_exchange(const void *body, uint32_t size, struct protocol_exchange *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->cookie = wire_get_u64(&reader);
    ret->type = (enum exchange_kind)part_get_enum(&reader, EXCHANGE_PATTERN);
    ret->name_size = part_get_text(&reader, &ret->name, PROTOCOL_ACTOR_NAME_MAX);
    return wire_end(&reader);
}

int protocol_put_answer(void *body, uint32_t size, const struct protocol_answer *answer)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, answer->cookie);
    wire_put_u64(&writer, answer->value);
    return (int)wire_written(&writer);
}

int protocol_get_answer(const void *body, uint32_t size, struct protocol_answer *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->cookie = wire_get_u64(&reader);
    ret->value = wire_get_u64(&reader);
    return wire_end(&reader);
}
