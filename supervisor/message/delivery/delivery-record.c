/* SPDX-License-Identifier: MIT */

/* Writes messages and answers as records into an inbox. */

#include "supervisor/message/delivery/delivery-private.h"

/* Bytes of ASK_FAILED and TERMINATED without their text. */
#define TEXT_RECORD_FIXED 32u

static uint32_t content_room(const struct envelope *envelope, uint32_t inline_size)
{
    const uint32_t names = envelope->topic.type_size + envelope->topic.key_size;

    return 24u + ((names + 7u) & ~7u) + inline_size + 1u;
}

static int put_message(void *body, uint32_t room, const struct envelope *envelope,
                       const struct payload_wire *wire)
{
    struct protocol_message message = envelope_message(envelope);

    message.content.payload = *wire;
    return protocol_put_message(body, room, &message);
}

static int put_replied(void *body, uint32_t room, const struct envelope *envelope,
                       const struct payload_wire *wire)
{
    const struct protocol_replied replied = {
        .cookie = envelope->cookie,
        .from = envelope->sender,
        .content = {.topic = envelope->topic, .payload = *wire},
    };

    return protocol_put_replied(body, room, &replied);
}

static int put_text(void *body, uint32_t room, const struct envelope *envelope)
{
    const char *text = payload_data(&envelope->payload);
    const uint32_t size = (uint32_t)envelope->payload.size;

    if (envelope->kind == PROTOCOL_TERMINATED) {
        const struct protocol_terminated terminated = {
            .reference = envelope->sender, .cause = text, .cause_size = size};
        return protocol_put_terminated(body, room, &terminated);
    }
    const struct protocol_refused refused = {
        .cookie = envelope->cookie, .error = envelope->error, .reason = text, .reason_size = size};
    return protocol_put_refused(body, room, &refused);
}

int delivery_write(struct actor *actor, const struct envelope *envelope, struct payload_wire *wire)
{
    struct endpoint *endpoint = actor->inbox.endpoint;
    const bool text =
        envelope->kind == PROTOCOL_ASK_FAILED || envelope->kind == PROTOCOL_TERMINATED;
    const uint32_t inline_max = endpoint->channel.mine.header->inline_max;
    const bool blob = envelope->payload.fd >= 0 || envelope->payload.size > inline_max;
    const uint32_t size = !text && blob ? 0 : (uint32_t)envelope->payload.size;
    const uint32_t room =
        text ? TEXT_RECORD_FIXED + size : PROTOCOL_MESSAGE_CONTENT + content_room(envelope, size);
    void *body;
    int r;

    r = endpoint_reserve(endpoint, room, &body);
    if (r != 0)
        return r;
    if (!text) {
        r = endpoint_give(endpoint, &envelope->payload, wire);
        if (r != 0)
            return r;
    }
    if (text)
        r = put_text(body, room, envelope);
    else if (envelope->kind == PROTOCOL_REPLIED)
        r = put_replied(body, room, envelope, wire);
    else
        r = put_message(body, room, envelope, wire);
    if (r < 0)
        return r;
    endpoint_commit(endpoint, envelope->kind, (uint32_t)r);
    return 0;
}
