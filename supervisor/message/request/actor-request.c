/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/endpoint.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/ask/ask.h"
#include "supervisor/message/dead-letter/undeliverable.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/delivery/least-loaded.h"
#include "supervisor/message/exchange/forward.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/request/actor-request-private.h"
#include "supervisor/message/router.h"
#include <errno.h>
#include <string.h>

int actor_request_forgive(int r)
{
    return endpoint_is_loss(r) ? 0 : r;
}

int actor_request_take_envelope(struct actor *from, uint16_t kind,
                                const struct protocol_content *content, struct envelope **ret)
{
    struct envelope *envelope = envelope_new(kind, &content->topic);
    int r;

    if (!envelope)
        return -ENOMEM;
    r = endpoint_take(from->inbox.endpoint, &content->payload, &envelope->payload);
    /* The envelope's copy is checked: the sender may change its own. */
    if (r == 0 && !topic_type_valid(envelope->topic.type, envelope->topic.type_size))
        r = -EBADMSG;
    if (r != 0) {
        if (actor_request_forgive(r) == 0)
            actor_log(from, LOG_LEVEL_ERROR, "a message from it is lost: %s", strerror(-r));
        envelope_free(envelope);
        return r;
    }
    envelope->id = message_context_next_id(from->context);
    envelope->sender = actor_self(from)->reference;
    envelope->sent_at = loop_realtime(from->context->loop);
    *ret = envelope;
    return 0;
}

/* Overflow=block: whether the sender must wait for room; it is resumed when there is some. */
static bool must_wait(struct actor *from, struct actor *to, const struct protocol_content *content)
{
    char type[TOPIC_TYPE_MAX], key[TOPIC_KEY_MAX];
    struct topic topic = content->topic;

    if (from->inbox.endpoint->draining ||
        (!actor_exchange(to) && actor_policy(to).overflow != CONFIG_OVERFLOW_BLOCK))
        return false;
    /* Copied first: the sender may change its own. */
    if (topic.type_size > 0)
        topic.type = memcpy(type, topic.type, topic.type_size);
    if (topic.key_size > 0)
        topic.key = memcpy(key, topic.key, topic.key_size);
    return topic_type_valid(type, topic.type_size) &&
           forward_must_wait(from, to, &topic, envelope_bytes_of(content));
}

/* ---- from ring to ring ---- */

/*
 * Copies a message from its sender's ring straight into its recipient's inbox. It is copied once,
 * to memory that no other process can write, and checked there. Messages for which this is not
 * possible become envelopes and go through the router.
 */

enum {
    _FAST_PATH_E_SUCCESS,
    FAST_PATH_E_CLOSED, /* no room, too large for a record, or with a descriptor */
};

struct fast_path {
    struct actor *to;
    uint8_t *body;
    uint32_t head;                   /* bytes of the record before the content */
    uint32_t size;                   /* of the content */
    struct protocol_content content; /* points into the record */
};

/* Returns the actor into whose inbox a message for `to` can be written immediately; NULL = none.
 * `*ret_flags`: enum protocol_message_flags. */
static struct actor *find_inbox(struct actor *to, uint32_t *ret_flags)
{
    if (to->members && !to->paused && mailbox_idle(&to->mailbox)) {
        *ret_flags = PROTOCOL_MESSAGE_POOL;
        return least_loaded_pick(to->members);
    }
    *ret_flags = 0;
    return actor_is_direct(to) ? to : NULL;
}

/* Copies the content at `bytes`, behind `head` bytes that fast_path_end_…() fills. The content may
 * take less than `size`. Returns 0, FAST_PATH_E_CLOSED, or -EBADMSG. Nothing is sent before
 * fast_path_end_…(), and nothing must be undone without it. */
static int fast_path_begin(struct fast_path *fast_path, struct actor *to, uint32_t head,
                           const void *bytes, uint32_t size)
{
    const uint32_t inline_max = to->inbox.endpoint->channel.mine.header->inline_max;
    void *body;
    int r;

    if (to->inbox.full || size > inline_max + PROTOCOL_CONTENT_FIXED)
        return FAST_PATH_E_CLOSED;
    r = endpoint_reserve(to->inbox.endpoint, head + size, &body);
    if (r != 0) {
        to->inbox.full = r == ENDPOINT_E_FULL;
        return FAST_PATH_E_CLOSED;
    }
    *fast_path = (struct fast_path){.to = to, .body = body, .head = head};
    memcpy(fast_path->body + head, bytes, size);
    r = protocol_get_content(fast_path->body + head, size, &fast_path->content, &fast_path->size);
    if (r < 0 ||
        !topic_type_valid(fast_path->content.topic.type, fast_path->content.topic.type_size))
        return -EBADMSG;
    if (fast_path->content.payload.form != PAYLOAD_INLINE ||
        fast_path->content.payload.size > inline_max)
        return FAST_PATH_E_CLOSED;
    return 0;
}

static void fast_path_end_message(struct fast_path *fast_path, struct protocol_message *message)
{
    struct actor *to = fast_path->to;

    message->content = fast_path->content;
    protocol_put_message_head(fast_path->body, message);
    endpoint_commit(to->inbox.endpoint, PROTOCOL_MESSAGE, fast_path->head + fast_path->size);
    (message->flags & PROTOCOL_MESSAGE_POOL ? to->pool : to)->counters.accepted++;
    if (to->log != 0)
        actor_log_message(to, ACTOR_LOG_ENQUEUED, message, NULL);
    delivery_note_sent(to, message);
}

static void fast_path_end_reply(struct fast_path *fast_path, uint64_t cookie, uint64_t from)
{
    memcpy(fast_path->body, &cookie, sizeof(cookie));
    memcpy(fast_path->body + sizeof(cookie), &from, sizeof(from));
    endpoint_commit(fast_path->to->inbox.endpoint, PROTOCOL_REPLIED,
                    fast_path->head + fast_path->size);
}

/* ---- tell ---- */

static int tell_slowly(struct actor *from, struct actor *to, const struct ring_record *record)
{
    struct protocol_tell tell;
    struct envelope *envelope;
    int r = protocol_get_tell(record->body, record->size, &tell);

    if (r < 0)
        return r;
    if (to && must_wait(from, to, &tell.content))
        return ENDPOINT_E_FULL;
    r = actor_request_take_envelope(from, PROTOCOL_MESSAGE, &tell.content, &envelope);
    if (r != 0)
        return actor_request_forgive(r);
    (void)router_send_to(from->context, to ? to->reference : tell.to, envelope);
    return 0;
}

static struct protocol_message new_message(struct actor *from, uint32_t flags)
{
    return (struct protocol_message){
        .id = message_context_next_id(from->context),
        .sender = actor_self(from)->reference,
        .sent_at = loop_realtime(from->context->loop),
        .flags = flags,
    };
}

static int on_tell(struct actor *from, const struct ring_record *record)
{
    struct fast_path fast_path;
    struct actor *to, *inbox;
    uint64_t reference;
    uint32_t flags;
    int r = FAST_PATH_E_CLOSED;

    if (record->size < PROTOCOL_TELL_CONTENT)
        return -EBADMSG;
    memcpy(&reference, record->body, sizeof(reference));
    to = actor_get(from->context, reference);
    inbox = to && !to->place ? find_inbox(to, &flags) : NULL;
    if (inbox)
        r = fast_path_begin(&fast_path, inbox, PROTOCOL_MESSAGE_CONTENT,
                            (const uint8_t *)record->body + PROTOCOL_TELL_CONTENT,
                            record->size - PROTOCOL_TELL_CONTENT);
    if (r < 0)
        return r;
    if (r == FAST_PATH_E_CLOSED)
        return tell_slowly(from, to, record);
    if (fast_path.size != record->size - PROTOCOL_TELL_CONTENT)
        return -EBADMSG;
    struct protocol_message message = new_message(from, flags);
    fast_path_end_message(&fast_path, &message);
    return 0;
}

/* ---- ask ---- */

static int fail_ask(struct actor *from, uint64_t cookie, int error, const char *reason)
{
    const struct ask_options options = {
        .asker = from, .cookie = cookie, .timeout = USEC_INFINITY, .wanted = {.type = ""}};
    struct ask *ask;

    if (ask_new(&ask, from->context, &options) == 0)
        ask_fail(ask, error, reason);
    else
        endpoint_break(from->inbox.endpoint, "cannot be answered: out of memory");
    return 0;
}

static int on_ask(struct actor *from, const struct ring_record *record)
{
    char wanted[TOPIC_TYPE_MAX];
    struct ask_options options = {.asker = from};
    struct protocol_ask ask;
    struct envelope *envelope;
    struct actor *to;
    struct ask *entry;
    int r = protocol_get_ask(record->body, record->size, &ask);

    if (r < 0)
        return r;
    if (ask.wanted_size > 0)
        memcpy(wanted, ask.wanted, ask.wanted_size);
    if (!topic_type_valid(wanted, ask.wanted_size))
        return -EBADMSG;
    /* An ask that fails immediately adds to the answers that wait for the asker. */
    if (delivery_must_read_first(from))
        return ENDPOINT_E_FULL;
    to = actor_get(from->context, ask.to);
    if (to && must_wait(from, to, &ask.content))
        return ENDPOINT_E_FULL;
    r = actor_request_take_envelope(from, PROTOCOL_MESSAGE, &ask.content, &envelope);
    if (r != 0)
        return actor_request_forgive(r) != 0 ? r : fail_ask(from, ask.cookie, -r, strerror(-r));
    options.cookie = ask.cookie;
    options.timeout = ask.timeout;
    options.wanted = (struct topic){.type = wanted, .type_size = ask.wanted_size};
    r = from->n_asks >= ACTOR_ASKS_MAX ? -EBUSY : ask_new(&entry, from->context, &options);
    if (r < 0) {
        envelope_free(envelope);
        return fail_ask(from, ask.cookie, -r, r == -EBUSY ? "too many open asks" : strerror(-r));
    }
    envelope->ask = entry->handle;
    (void)router_send_to(from->context, ask.to, envelope);
    return 0;
}

static int on_ask_drop(struct actor *from, const struct ring_record *record)
{
    struct protocol_by_reference by;
    int r = protocol_get_by_reference(record->body, record->size, &by);

    if (r < 0)
        return r;
    ask_end_cookie(from, by.cookie);
    return 0;
}

/* ---- reply ---- */

static int reply_slowly(struct actor *from, struct ask *ask, const struct ring_record *record)
{
    struct undeliverable why = {.reason = DEAD_LATE_REPLY, .text = "the ask has ended"};
    struct protocol_reply reply;
    struct envelope *envelope;
    int r = protocol_get_reply(record->body, record->size, &reply);

    if (r < 0)
        return r;
    r = actor_request_take_envelope(from, PROTOCOL_REPLIED, &reply.content, &envelope);
    if (r != 0)
        return actor_request_forgive(r);
    envelope->to = ask_asked_by(&from->context->asks, reply.ask);
    if (ask && !ask_wants(ask, &envelope->topic))
        why = (struct undeliverable){.reason = DEAD_WRONG_REPLY,
                                     .text = "its type is not the one that was asked for"};
    else if (ask && (!ask->asker || actor_answer_fits(ask->asker, envelope_bytes(envelope)))) {
        ask_answer(ask, envelope);
        return 0;
    } else if (ask) {
        why = (struct undeliverable){.reason = DEAD_MAILBOX_FULL,
                                     .text = "its asker reads no answers"};
        envelope->to = ask->asker->reference;
        ask_fail(ask, ENOBUFS, "the reply found no room in the mailbox");
    }
    undeliverable_end(from->context, envelope, NULL, &why);
    return 0;
}

/* Whether an answer can be written immediately without overtaking another. */
static bool is_direct_for_answers(const struct actor *asker)
{
    return asker && asker->inbox.endpoint && list_empty(&asker->mailbox.answers) &&
           (!actor_takes_messages(asker) || list_empty(&asker->mailbox.messages));
}

static int on_reply(struct actor *from, const struct ring_record *record)
{
    struct fast_path fast_path;
    uint64_t handle;
    struct ask *ask;
    int r;

    if (record->size < PROTOCOL_REPLY_CONTENT)
        return -EBADMSG;
    memcpy(&handle, record->body, sizeof(handle));
    ask = ask_get(&from->context->asks, handle);
    if (!ask || !is_direct_for_answers(ask->asker))
        return reply_slowly(from, ask, record);
    r = fast_path_begin(&fast_path, ask->asker, PROTOCOL_REPLIED_CONTENT,
                        (const uint8_t *)record->body + PROTOCOL_REPLY_CONTENT,
                        record->size - PROTOCOL_REPLY_CONTENT);
    if (r < 0)
        return r;
    if (r == FAST_PATH_E_CLOSED || !ask_wants(ask, &fast_path.content.topic))
        return reply_slowly(from, ask, record);
    if (fast_path.size != record->size - PROTOCOL_REPLY_CONTENT)
        return -EBADMSG;
    fast_path_end_reply(&fast_path, ask->cookie, actor_self(from)->reference);
    ask_end(ask);
    return 0;
}

/* ---- all records ---- */

int actor_request_on_record(struct actor *actor, const struct ring_record *record)
{
    if (actor->restricted && record->kind >= PROTOCOL_TELL && record->kind <= PROTOCOL_FORWARD)
        return -EPERM;
    switch (record->kind) {
    case PROTOCOL_TELL:
        return on_tell(actor, record);
    case PROTOCOL_ASK:
        return on_ask(actor, record);
    case PROTOCOL_ASK_DROP:
        return on_ask_drop(actor, record);
    case PROTOCOL_REPLY:
        return on_reply(actor, record);
    case PROTOCOL_FORWARD:
        return actor_request_on_forward(actor, record);
    case PROTOCOL_UNHANDLED:
    case PROTOCOL_ERRED:
        return actor_request_on_verdict(actor, record);
    case PROTOCOL_STASHED:
    case PROTOCOL_UNSTASHED:
        return actor_request_on_stash(actor, record);
    default:
        return actor_request_on_request(actor, record);
    }
}
