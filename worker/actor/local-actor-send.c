/* SPDX-License-Identifier: MIT */

/* Sends messages: tell, ask, reply, forward, and verdicts on received messages. */

#include "worker/actor/local-actor.h"

#include "shared/base/cleanup.h"
#include "shared/protocol/protocol-requests.h"
#include "worker/base/sized.h"
#include "worker/public.h"
#include <string.h>

int send_stash(struct troupe_actor *actor, enum protocol_actor_kind kind, uint64_t message,
               uint32_t flags)
{
    const struct protocol_stash stash = {.message = message, .flags = flags};

    return carrier_send(actor->carrier, kind, stash, &stash, NULL);
}

int send_verdict(struct troupe_actor *actor, enum protocol_actor_kind kind, uint64_t message,
                 int code, const char *text)
{
    struct protocol_verdict verdict = {.message = message, .code = code, .text = text};

    if (!text)
        verdict.text = strerrordesc_np(code);
    if (verdict.text)
        verdict.text_size = (uint32_t)strnlen(verdict.text, PROTOCOL_REASON_MAX);
    return carrier_send(actor->carrier, kind, verdict, &verdict, NULL);
}

int send_by_reference(struct troupe_actor *actor, enum protocol_actor_kind kind, uint64_t cookie,
                      uint64_t reference)
{
    const struct protocol_by_reference by = {.cookie = cookie, .reference = reference};

    return carrier_send(actor->carrier, kind, by_reference, &by, NULL);
}

static int forward_to(struct troupe_message *message, const struct protocol_forward *forward)
{
    int r;

    if (message->stage != MAIL_IN_HAND)
        return -EALREADY;
    r = carrier_send(message->actor->carrier, PROTOCOL_FORWARD, forward, forward, NULL);
    if (r == 0)
        message->stage = MAIL_DONE;
    return r;
}

_public_ int troupe_message_forward(struct troupe_message *message, troupe_ref to)
{
    const struct protocol_forward forward = {.message = message->wire.id, .to = to};

    return forward_to(message, &forward);
}

_public_ int troupe_message_forward_with_key(struct troupe_message *message, troupe_ref to,
                                             const void *key, size_t key_size)
{
    const struct protocol_forward forward = {
        .message = message->wire.id,
        .to = to,
        .new_key = true,
        .key = key,
        .key_size = (uint32_t)key_size,
    };

    return key_size > TOPIC_KEY_MAX ? -EINVAL : forward_to(message, &forward);
}

int send_topic(struct topic *ret, const char *type, const void *key, size_t key_size)
{
    size_t length = type ? strnlen(type, TOPIC_TYPE_MAX + 1) : 0;

    if (key_size > TOPIC_KEY_MAX || !topic_type_valid(type, length))
        return -EINVAL;
    *ret = (struct topic){.type = type ? type : "", .type_size = (uint32_t)length, .key = key};
    ret->key_size = key ? (uint32_t)key_size : 0;
    return 0;
}

/* The options of the first layout. */
#define OPTIONS_SIZE_MIN offsetof(struct troupe_message_options, default_type)

/* Returns a caller's options in the current layout; NULL means the defaults. */
static int take_options(const struct troupe_message_options **options,
                        struct troupe_message_options *room)
{
    const void *given = *options;
    int r;

    *room = (struct troupe_message_options)TROUPE_MESSAGE_DEFAULTS;
    r = sized_take(&given, room, sizeof(*room), OPTIONS_SIZE_MIN);
    *options = given;
    return r;
}

static int fill_content(struct protocol_content *ret, const struct troupe_message_options *options)
{
    if (options->text && options->data)
        return -EINVAL;
    ret->payload =
        (struct payload_wire){.form = PAYLOAD_INLINE, .data = options->data, .size = options->size};
    if (options->text) {
        ret->payload.data = options->text;
        ret->payload.size = strlen(options->text);
    }
    return send_topic(&ret->topic, options->type, options->key, options->key_size);
}

_public_ int troupe_actor_tell_with(struct troupe_actor *actor, troupe_ref to,
                                    const struct troupe_message_options *options)
{
    struct protocol_tell tell = {.to = to};
    struct troupe_message_options current;
    int r = take_options(&options, &current);

    if (r == 0)
        r = fill_content(&tell.content, options);
    if (r < 0)
        return r;
    return carrier_send(actor->carrier, PROTOCOL_TELL, tell, &tell, &tell.content.payload);
}

_public_ int troupe_actor_reply(struct troupe_actor *actor, uint64_t ask, const char *type,
                                const void *data, size_t size)
{
    struct protocol_reply reply = {.ask = ask};
    int r = fill_content(&reply.content, TROUPE_MESSAGE(type, .data = data, .size = size));

    if (r < 0)
        return r;
    return carrier_send(actor->carrier, PROTOCOL_REPLY, reply, &reply, &reply.content.payload);
}

_public_ int troupe_message_reply(struct troupe_message *message, const char *type,
                                  const void *data, size_t size)
{
    return troupe_actor_reply(message->actor, message->wire.ask, type, data, size);
}

static int keep_default(struct troupe_future *future, const struct troupe_message_options *options)
{
    struct protocol_content content = {.payload = {.form = PAYLOAD_INLINE,
                                                   .data = options->default_data,
                                                   .size = options->default_size}};
    int r;

    if (!options->default_type && !options->default_data)
        return 0;
    if (options->default_size > PAYLOAD_BLOB_MAX)
        return -EMSGSIZE;
    r = send_topic(&content.topic, options->default_type, NULL, 0);
    return r < 0 ? r : future_set_default(future, &content);
}

static int fill_ask(struct protocol_ask *ask, const struct troupe_message_options *options)
{
    struct topic wanted;
    int r = send_topic(&wanted, options->reply_type, NULL, 0);

    if (r < 0)
        return r;
    ask->timeout = options->timeout_usec == 0 ? PROTOCOL_ASK_TIMEOUT : options->timeout_usec;
    ask->wanted = wanted.type;
    ask->wanted_size = wanted.type_size;
    return fill_content(&ask->content, options);
}

_public_ int troupe_actor_ask_with(struct troupe_actor *actor, troupe_ref to,
                                   struct troupe_future **ret,
                                   const struct troupe_message_options *options)
{
    struct protocol_ask ask = {.to = to};
    struct troupe_message_options current;
    struct troupe_future *future;
    int r = take_options(&options, &current);

    if (r == 0)
        r = fill_ask(&ask, options);
    if (r == 0)
        r = future_new(&future, actor, &actor->futures, FUTURE_ASK);
    if (r < 0)
        return r;
    future->to = to;
    ask.cookie = future->cookie;
    r = keep_default(future, options);
    if (r == 0)
        r = carrier_send(actor->carrier, PROTOCOL_ASK, ask, &ask, &ask.content.payload);
    if (r < 0)
        future_delete(&actor->futures, future);
    else
        *ret = future;
    return r;
}

static int timer(struct troupe_actor *actor, struct protocol_timer *timer, uint64_t *ret_id,
                 const struct troupe_message_options *options)
{
    struct troupe_message_options current;
    struct troupe_future *future;
    int r = take_options(&options, &current);

    if (r == 0)
        r = fill_content(&timer->content, options);
    if (r == 0)
        r = future_new(&future, actor, &actor->futures, FUTURE_REQUEST);
    if (r < 0)
        return r;
    timer->cookie = future->cookie;
    timer->period = options->period_usec;
    r = carrier_send(actor->carrier, PROTOCOL_TIMER, timer, timer, &timer->content.payload);
    return future_answer(future, r, ret_id);
}

_public_ int troupe_actor_timer_after_with(struct troupe_actor *actor, troupe_ref to,
                                           uint64_t delay_usec, uint64_t *ret_id,
                                           const struct troupe_message_options *options)
{
    struct protocol_timer what = {.to = to, .at = delay_usec};

    return timer(actor, &what, ret_id, options);
}

_public_ int troupe_actor_timer_at_with(struct troupe_actor *actor, troupe_ref to,
                                        uint64_t realtime_usec, uint64_t *ret_id,
                                        const struct troupe_message_options *options)
{
    struct protocol_timer what = {.to = to, .at = realtime_usec, .flags = PROTOCOL_TIMER_REALTIME};

    return timer(actor, &what, ret_id, options);
}
