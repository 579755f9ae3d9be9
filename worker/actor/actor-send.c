/* SPDX-License-Identifier: MIT */

/* Sends messages: tell, ask, reply, forward, and verdicts on received messages. */

#include "worker/actor/actor.h"

#include "shared/base/cleanup.h"
#include "shared/protocol/protocol-requests.h"
#include "worker/base/sized.h"
#include "worker/public.h"
#include <string.h>

/* More than the fields of any record here take beside its content: ASK's, with the wanted type. */
#define FIXED_FIELDS  192u
#define DEFAULTS_DATA (TOPIC_TYPE_MAX + 8) /* behind a default's type; 8-aligned */

static int reserve(struct troupe_actor *actor, uint32_t size, void **ret)
{
    return actor->carrier.class->reserve(actor->carrier.owner, size, ret);
}

static int commit(struct troupe_actor *actor, enum protocol_actor_kind kind, int size)
{
    return actor->carrier.class->commit(actor->carrier.owner, (uint16_t)kind, size);
}

/* ---- about messages received ---- */

int send_stash(struct troupe_actor *actor, enum protocol_actor_kind kind, uint64_t message,
               uint32_t flags)
{
    struct protocol_stash stash = {.message = message, .flags = flags};
    void *body;
    int r = reserve(actor, FIXED_FIELDS, &body);

    return r < 0 ? r : commit(actor, kind, protocol_put_stash(body, FIXED_FIELDS, &stash));
}

int send_verdict(struct troupe_actor *actor, enum protocol_actor_kind kind, uint64_t message,
                 int code, const char *text)
{
    struct protocol_verdict verdict = {
        .message = message,
        .code = code,
        .text = text ? text : "",
        .text_size = text ? (uint32_t)strnlen(text, PROTOCOL_REASON_MAX) : 0,
    };
    uint32_t size = FIXED_FIELDS + verdict.text_size;
    void *body;
    int r = reserve(actor, size, &body);

    return r < 0 ? r : commit(actor, kind, protocol_put_verdict(body, size, &verdict));
}

int send_by_reference(struct troupe_actor *actor, enum protocol_actor_kind kind, uint64_t cookie,
                      uint64_t reference)
{
    struct protocol_by_reference by = {.cookie = cookie, .reference = reference};
    void *body;
    int r = reserve(actor, FIXED_FIELDS, &body);

    return r < 0 ? r : commit(actor, kind, protocol_put_by_reference(body, FIXED_FIELDS, &by));
}

static int forward_to(struct troupe_message *message, const struct protocol_forward *forward)
{
    struct troupe_actor *actor = message->actor;
    const uint32_t room = FIXED_FIELDS + TOPIC_KEY_MAX;
    void *body;
    int r;

    if (message->stage != MAIL_IN_HAND)
        return -EALREADY;
    r = reserve(actor, room, &body);
    if (r == 0)
        r = commit(actor, PROTOCOL_FORWARD, protocol_put_forward(body, room, forward));
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

/* ---- messages ---- */

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

/* The current layout of a caller's options; NULL stands for the defaults. */
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

/* What a message is about and carries; the payload not yet on its way. */
struct outgoing {
    struct protocol_content content;
    const void *data;
    size_t size;
};

static int outgoing(struct outgoing *ret, const struct troupe_message_options *options)
{
    if (options->text && options->data)
        return -EINVAL;
    *ret = (struct outgoing){.data = options->data, .size = options->size};
    if (options->text) {
        ret->data = options->text;
        ret->size = strlen(options->text);
    }
    return send_topic(&ret->content.topic, options->type, options->key, options->key_size);
}

/* Room in the ring for the record around it, and the payload on its way or in `content`. */
static int begin(struct troupe_actor *actor, struct outgoing *out, uint32_t *ret_size, void **ret)
{
    struct payload_wire *payload = &out->content.payload;
    bool blob = out->size > actor->carrier.inline_max;
    uint32_t size = FIXED_FIELDS + PROTOCOL_CONTENT_FIXED + (blob ? 0 : (uint32_t)out->size);
    int r;

    r = reserve(actor, size, ret);
    if (r < 0)
        return r;
    *ret_size = size;
    *payload = (struct payload_wire){.form = PAYLOAD_INLINE, .data = out->data, .size = out->size};
    return blob ? carrier_send_blob(&actor->carrier, out->data, out->size, payload) : 0;
}

_public_ int troupe_actor_tell_with(struct troupe_actor *actor, troupe_ref to,
                                    const struct troupe_message_options *options)
{
    struct protocol_tell tell = {.to = to};
    struct troupe_message_options current;
    struct outgoing out;
    uint32_t room;
    void *body;
    int r;

    r = take_options(&options, &current);
    if (r == 0)
        r = outgoing(&out, options);
    if (r == 0)
        r = begin(actor, &out, &room, &body);
    if (r < 0)
        return r;
    tell.content = out.content;
    return commit(actor, PROTOCOL_TELL, protocol_put_tell(body, room, &tell));
}

_public_ int troupe_actor_reply(struct troupe_actor *actor, uint64_t ask, const char *type,
                                const void *data, size_t size)
{
    struct protocol_reply reply = {.ask = ask};
    struct outgoing out;
    uint32_t room;
    void *body;
    int r;

    r = outgoing(&out, TROUPE_MESSAGE(type, .data = data, .size = size));
    if (r == 0)
        r = begin(actor, &out, &room, &body);
    if (r < 0)
        return r;
    reply.content = out.content;
    return commit(actor, PROTOCOL_REPLY, protocol_put_reply(body, room, &reply));
}

_public_ int troupe_message_reply(struct troupe_message *message, const char *type,
                                  const void *data, size_t size)
{
    return troupe_actor_reply(message->actor, message->wire.ask, type, data, size);
}

/* ---- asks ---- */

/* What is taken for the reply after a time-out: type and data in one piece of memory. */
static int keep_default(struct troupe_future *future, const struct troupe_message_options *options)
{
    struct topic topic;

    if (!options->default_type && !options->default_data)
        return 0;
    if (send_topic(&topic, options->default_type, NULL, 0) < 0)
        return -EINVAL;
    if (options->default_size > SIZE_MAX - DEFAULTS_DATA - 1)
        return -EMSGSIZE;
    future->default_type = calloc(1, DEFAULTS_DATA + options->default_size + 1);
    if (!future->default_type)
        return -ENOMEM;
    memcpy(future->default_type, topic.type, topic.type_size);
    if (options->default_size > 0)
        memcpy(future->default_type + DEFAULTS_DATA, options->default_data, options->default_size);
    future->default_size = options->default_size;
    return 0;
}

static int put_ask(struct troupe_actor *actor, struct troupe_future *future, struct outgoing *out,
                   const struct troupe_message_options *options)
{
    struct protocol_ask ask = {.to = future->to, .cookie = future->cookie};
    struct topic wanted;
    uint32_t room;
    void *body;
    int r;

    r = send_topic(&wanted, options->reply_type, NULL, 0);
    if (r == 0)
        r = begin(actor, out, &room, &body);
    if (r < 0)
        return r;
    ask.timeout = options->timeout_usec == 0 ? PROTOCOL_ASK_TIMEOUT : options->timeout_usec;
    ask.wanted = wanted.type;
    ask.wanted_size = wanted.type_size;
    ask.content = out->content;
    return commit(actor, PROTOCOL_ASK, protocol_put_ask(body, room, &ask));
}

_public_ int troupe_actor_ask_with(struct troupe_actor *actor, troupe_ref to,
                                   struct troupe_future **ret,
                                   const struct troupe_message_options *options)
{
    struct troupe_message_options current;
    struct troupe_future *future;
    struct outgoing out;
    int r;

    r = take_options(&options, &current);
    if (r == 0)
        r = outgoing(&out, options);
    if (r == 0)
        r = future_new(&future, actor, &actor->futures, FUTURE_ASK);
    if (r < 0)
        return r;
    future->to = to;
    r = keep_default(future, options);
    if (r == 0)
        r = put_ask(actor, future, &out, options);
    if (r < 0)
        future_delete(&actor->futures, future);
    else
        *ret = future;
    return r;
}

/* ---- timers ---- */

static int timer(struct troupe_actor *actor, struct protocol_timer *timer, uint64_t *ret_id,
                 const struct troupe_message_options *options)
{
    struct troupe_message_options current;
    struct troupe_future *future;
    struct outgoing out;
    uint64_t ignored;
    uint32_t room;
    void *body;
    int r;

    r = take_options(&options, &current);
    if (r == 0)
        r = outgoing(&out, options);
    /* Before the payload: nothing may fail between a descriptor and the record that names it. */
    if (r == 0)
        r = future_new(&future, actor, &actor->futures, FUTURE_REQUEST);
    if (r < 0)
        return r;
    timer->cookie = future->cookie;
    timer->period = options->period_usec;
    r = begin(actor, &out, &room, &body);
    timer->content = out.content;
    if (r == 0)
        r = commit(actor, PROTOCOL_TIMER, protocol_put_timer(body, room, timer));
    return send_request(actor, future, r, ret_id ? ret_id : &ignored);
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
