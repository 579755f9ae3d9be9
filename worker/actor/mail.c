/* SPDX-License-Identifier: MIT */
#include "worker/actor/mail.h"

#include "shared/base/cleanup.h"
#include "worker/public.h"
#include <string.h>

int mail_new(struct troupe_message **ret, const void *body, uint32_t size, int control)
{
    struct protocol_message wire;
    struct troupe_message *message;
    int r;

    if (protocol_get_message(body, size, &wire) < 0)
        return -EPROTO;
    message = malloc(sizeof(*message) + content_room(&wire.content));
    if (!message)
        return -ENOMEM;
    *message = (struct troupe_message){.wire = wire, .stage = MAIL_WAITING};
    list_init(&message->link);
    list_init(&message->held_link);
    r = content_place(&message->content, &wire.content, message->bytes, control);
    if (r < 0) {
        free(message);
        return r;
    }
    *ret = message;
    return 0;
}

void mail_free(struct troupe_message *message)
{
    if (!message)
        return;
    list_unlink(&message->link);
    list_unlink(&message->held_link);
    content_deinit(&message->content);
    free(message->text);
    free(message);
}

_public_ const char *troupe_message_type(const struct troupe_message *message)
{
    return message->content.type;
}

_public_ const void *troupe_message_key(const struct troupe_message *message, size_t *ret_size)
{
    *ret_size = message->content.key_size;
    return message->content.key;
}

_public_ const void *troupe_message_payload(const struct troupe_message *message, size_t *ret_size)
{
    *ret_size = message->content.size;
    return message->content.payload;
}

_public_ troupe_ref troupe_message_sender(const struct troupe_message *message)
{
    return message->wire.sender;
}

_public_ uint64_t troupe_message_id(const struct troupe_message *message)
{
    return message->wire.id;
}

_public_ uint64_t troupe_message_sent_at(const struct troupe_message *message)
{
    return message->wire.sent_at;
}

_public_ uint64_t troupe_message_timer(const struct troupe_message *message)
{
    return message->wire.timer;
}

_public_ bool troupe_message_is_redelivered(const struct troupe_message *message)
{
    return message->wire.flags & PROTOCOL_MESSAGE_REDELIVERED;
}

_public_ uint64_t troupe_message_ask(const struct troupe_message *message)
{
    return message->wire.ask;
}

_public_ int troupe_message_fail(struct troupe_message *message, int code, const char *text)
{
    free(message->text);
    /* Out of memory, the errno's own text is used. */
    message->text = strndup(text ? text : "", PROTOCOL_REASON_MAX);
    message->failed = true;
    message->code = code;
    return -EREMOTEIO;
}
