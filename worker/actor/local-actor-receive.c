/* SPDX-License-Identifier: MIT */

/* Reads the records that an actor receives. */

#include "worker/actor/local-actor.h"

#include "shared/base/cleanup.h"
#include "shared/protocol/protocol-requests.h"
#include "worker/public.h"
#include <string.h>

/* ---- messages ---- */

static int mail_new(struct troupe_message **ret, const void *body, uint32_t size, int control)
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
    if (r == -EPROTO) {
        free(message);
        return r;
    }
    message->error = r;
    *ret = message;
    return 0;
}

void mail_free(struct troupe_message *message)
{
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

/* ---- records ---- */

/* FOUND and REFUSED begin with a cookie, of the actor or of a client's request. */
static bool is_ours(const struct ring_record *record)
{
    uint64_t cookie;

    if (record->size < sizeof(cookie))
        return false;
    memcpy(&cookie, record->body, sizeof(cookie));
    return cookie & FUTURE_COOKIE;
}

bool actor_takes(const struct ring_record *record)
{
    switch (record->kind) {
    case PROTOCOL_MESSAGE:
    case PROTOCOL_REPLIED:
    case PROTOCOL_ASK_FAILED:
    case PROTOCOL_TERMINATED:
    case PROTOCOL_ANSWER:
        return true;
    case PROTOCOL_FOUND:
    case PROTOCOL_REFUSED:
        return is_ours(record);
    default:
        return false;
    }
}

static int receive_message(struct troupe_actor *actor, const struct ring_record *record,
                           uint32_t begin)
{
    struct troupe_message *message;
    int r = mail_new(&message, record->body, record->size, actor->carrier->control);

    if (r < 0)
        return r;
    message->actor = actor;
    message->begin = begin;
    message->end = actor->carrier->channel.in.head;
    list_push_back(&actor->queue, &message->link);
    list_push_back(&actor->held, &message->held_link);
    actor_hold(actor);
    return 0;
}

static int receive_reply(struct troupe_actor *actor, const struct ring_record *record)
{
    struct protocol_replied replied;
    struct troupe_future *future;

    if (protocol_get_replied(record->body, record->size, &replied) < 0)
        return -EPROTO;
    future = future_find(&actor->futures, replied.cookie);
    if (!future)
        return content_discard(&replied.content, actor->carrier->control);
    future_reply(&actor->futures, future, replied.from, &replied.content, actor->carrier->control);
    actor_future_ended(actor, future);
    return 0;
}

static int receive_refused(struct troupe_actor *actor, const struct ring_record *record)
{
    struct protocol_refused refused;
    struct troupe_future *future;

    if (protocol_get_refused(record->body, record->size, &refused) < 0)
        return -EPROTO;
    future = future_find(&actor->futures, refused.cookie);
    if (!future)
        return 0;
    future_fail(&actor->futures, future,
                refused.error > 0 && refused.error < 4096 ? -(int)refused.error : -EPROTO,
                refused.reason, refused.reason_size);
    actor_future_ended(actor, future);
    return 0;
}

static int receive_value(struct troupe_actor *actor, uint64_t cookie, uint64_t value)
{
    struct troupe_future *future = future_find(&actor->futures, cookie);

    /* A monitor ends by TERMINATED, not by the answer that it is set. */
    if (!future || future->kind != FUTURE_REQUEST)
        return 0;
    future_value(&actor->futures, future, value);
    actor_future_ended(actor, future);
    return 0;
}

static int receive_terminated(struct troupe_actor *actor, const struct ring_record *record)
{
    struct protocol_terminated what;
    struct protocol_content cause = {.topic = {.type = ""}};

    if (protocol_get_terminated(record->body, record->size, &what) < 0)
        return -EPROTO;
    cause.payload =
        (struct payload_wire){.form = PAYLOAD_INLINE, .data = what.cause, .size = what.cause_size};
    list_for_each_entry_safe (future, &actor->futures.monitors, struct troupe_future, link) {
        if (future->state != FUTURE_WAITING || future->to != what.reference)
            continue;
        future_reply(&actor->futures, future, what.reference, &cause, -1);
        actor_future_ended(actor, future);
    }
    return 0;
}

int actor_receive(struct troupe_actor *actor, const struct ring_record *record, uint32_t begin)
{
    struct protocol_answer answer;
    struct protocol_found found;

    actor->n_received++;
    switch (record->kind) {
    case PROTOCOL_MESSAGE:
        return receive_message(actor, record, begin);
    case PROTOCOL_REPLIED:
        return receive_reply(actor, record);
    case PROTOCOL_ASK_FAILED:
    case PROTOCOL_REFUSED:
        return receive_refused(actor, record);
    case PROTOCOL_TERMINATED:
        return receive_terminated(actor, record);
    case PROTOCOL_ANSWER:
        if (protocol_get_answer(record->body, record->size, &answer) < 0)
            return -EPROTO;
        return receive_value(actor, answer.cookie, answer.value);
    case PROTOCOL_FOUND:
        if (protocol_get_found(record->body, record->size, &found) < 0)
            return -EPROTO;
        return receive_value(actor, found.cookie, found.group);
    default:
        return -EPROTO;
    }
}
