/* SPDX-License-Identifier: MIT */
#include "supervisor/message/delivery-private.h"

/* Fields of ASK_FAILED and TERMINATED beside their text. */
#define TEXT_RECORD_FIXED 32u

static uint32_t content_room(const struct letter *letter, uint32_t inline_size)
{
    const uint32_t names = letter->topic.type_size + letter->topic.key_size;

    return 24u + ((names + 7u) & ~7u) + inline_size + 1u;
}

static int put_message(void *body, uint32_t room, const struct letter *letter,
                       const struct payload_wire *wire)
{
    const struct protocol_message message = {
        .id = letter->id,
        .sender = letter->sender,
        .ask = letter->ask,
        .timer = letter->timer,
        .sent_at = letter->sent_at,
        .flags = letter->flags,
        .attempt = letter->attempt,
        .content = {.topic = letter->topic, .payload = *wire},
    };

    return protocol_put_message(body, room, &message);
}

static int put_replied(void *body, uint32_t room, const struct letter *letter,
                       const struct payload_wire *wire)
{
    const struct protocol_replied replied = {
        .cookie = letter->cookie,
        .from = letter->sender,
        .content = {.topic = letter->topic, .payload = *wire},
    };

    return protocol_put_replied(body, room, &replied);
}

static int put_text(void *body, uint32_t room, const struct letter *letter)
{
    const char *text = parcel_data(&letter->payload);
    const uint32_t size = (uint32_t)letter->payload.size;

    if (letter->kind == PROTOCOL_TERMINATED) {
        const struct protocol_terminated terminated = {
            .reference = letter->sender, .cause = text, .cause_size = size};
        return protocol_put_terminated(body, room, &terminated);
    }
    const struct protocol_refused refused = {
        .cookie = letter->cookie, .error = letter->error, .reason = text, .reason_size = size};
    return protocol_put_refused(body, room, &refused);
}

int delivery_write(struct actor *actor, const struct letter *letter, struct payload_wire *wire)
{
    struct mailbox *mailbox = actor->mailbox;
    const bool text = letter->kind == PROTOCOL_ASK_FAILED || letter->kind == PROTOCOL_TERMINATED;
    const uint32_t inline_max = mailbox->channel.mine.header->inline_max;
    const bool blob = letter->payload.fd >= 0 || letter->payload.size > inline_max;
    const uint32_t size = !text && blob ? 0 : (uint32_t)letter->payload.size;
    const uint32_t room =
        text ? TEXT_RECORD_FIXED + size : PROTOCOL_MESSAGE_CONTENT + content_room(letter, size);
    void *body;
    int r;

    r = mailbox_reserve(mailbox, room, &body);
    if (r != 0)
        return r;
    if (!text) {
        r = mailbox_give(mailbox, &letter->payload, wire);
        if (r != 0)
            return r;
    }
    if (text)
        r = put_text(body, room, letter);
    else if (letter->kind == PROTOCOL_REPLIED)
        r = put_replied(body, room, letter, wire);
    else
        r = put_message(body, room, letter, wire);
    if (r < 0)
        return r;
    mailbox_commit(mailbox, letter->kind, (uint32_t)r);
    return 0;
}
