/* SPDX-License-Identifier: MIT */
#include "supervisor/message/envelope.h"

#include "shared/base/fault.h"
#include "shared/protocol/protocol.h"
#include "supervisor/channel/held-blob.h"
#include "supervisor/message/message-save.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct envelope_block {
    struct envelope envelope;
    char bytes[]; /* type, then key; or the head */
};

static struct envelope_block *block_new(uint16_t kind, size_t size)
{
    struct envelope_block *block = NULL;

    if (fault_inject("envelope") == 0)
        block = calloc(1, sizeof(*block) + size);
    if (!block)
        return NULL;
    list_init(&block->envelope.link);
    list_init(&block->envelope.share_link);
    block->envelope.kind = kind;
    block->envelope.payload = (struct payload)PAYLOAD_NULL;
    block->envelope.topic.type = "";
    return block;
}

struct envelope *envelope_new(uint16_t kind, const struct topic *topic)
{
    struct envelope_block *block = block_new(kind, topic->type_size + topic->key_size + 1u);

    if (!block)
        return NULL;
    block->envelope.topic = topic_copy(topic, block->bytes);
    return &block->envelope;
}

struct envelope *envelope_new_answer(uint16_t kind, const void *head, uint32_t size)
{
    struct envelope_block *block = block_new(kind, size);

    if (!block)
        return NULL;
    block->envelope.head = memcpy(block->bytes, head, size);
    block->envelope.head_size = size;
    return &block->envelope;
}

/* Copies all fields except link, topic and payload. */
static struct envelope *new_like(const struct envelope *envelope, const struct topic *topic)
{
    struct envelope *copy = envelope_new(envelope->kind, topic);
    const struct topic own = copy ? copy->topic : (struct topic){0};

    if (!copy)
        return NULL;
    *copy = *envelope;
    list_init(&copy->link);
    list_init(&copy->share_link);
    copy->share = NULL;
    copy->charged = NULL;
    copy->topic = own;
    copy->payload = (struct payload)PAYLOAD_NULL;
    return copy;
}

struct envelope *envelope_copy(const struct envelope *envelope)
{
    struct envelope *copy = new_like(envelope, &envelope->topic);

    if (copy && payload_copy(&copy->payload, &envelope->payload) < 0)
        return envelope_free(copy);
    return copy;
}

struct envelope *envelope_new_like(struct envelope *envelope, const struct topic *topic)
{
    struct envelope *changed = new_like(envelope, topic);

    if (changed)
        payload_move(&changed->payload, &envelope->payload);
    return changed;
}

struct envelope *envelope_free(struct envelope *envelope)
{
    if (!envelope)
        return NULL;
    if (envelope->charged)
        blob_share_discharge(envelope->charged, envelope->charge);
    payload_deinit(&envelope->payload);
    free(list_entry(envelope, struct envelope_block, envelope));
    return NULL;
}

struct protocol_message envelope_message(const struct envelope *envelope)
{
    return (struct protocol_message){
        .id = envelope->id,
        .sender = envelope->sender,
        .ask = envelope->ask,
        .timer = envelope->timer,
        .sent_at = envelope->sent_at,
        .flags = envelope->flags,
        .attempt = envelope->attempt,
        .content.topic = envelope->topic,
    };
}

/* A descriptor costs more than its bytes: there are few, and the start of workers needs some. */
#define ENVELOPE_BLOB_COST (UINT64_C(64) << 10)

static uint64_t bytes_of(const struct topic *topic, uint64_t payload_size, bool is_blob)
{
    return (is_blob ? ENVELOPE_BLOB_COST : 0) + sizeof(struct envelope) + topic->type_size +
           topic->key_size + payload_size;
}

uint64_t envelope_bytes(const struct envelope *envelope)
{
    return bytes_of(&envelope->topic, envelope->payload.size, envelope->payload.fd >= 0) +
           envelope->head_size;
}

uint64_t envelope_bytes_of(const struct protocol_content *content)
{
    return bytes_of(&content->topic, content->payload.size, content->payload.form == PAYLOAD_BLOB);
}

void topic_put(struct saved_writer *row, const struct topic *topic)
{
    saved_put_bytes(row, topic->type, topic->type_size);
    saved_put_number(row, topic->key != NULL);
    saved_put_bytes(row, topic->key, topic->key_size);
}

int topic_get(struct saved_reader *row, struct topic *ret)
{
    size_t type_size, key_size;
    const char *type = saved_get_bytes(row, &type_size);
    const bool has_key = saved_get_below(row, 1);
    const char *key = saved_get_bytes(row, &key_size);

    if (row->damaged || type_size > TOPIC_TYPE_MAX || key_size > TOPIC_KEY_MAX ||
        !topic_type_valid(type, type_size) || (!has_key && key_size > 0))
        return -EBADMSG;
    *ret = (struct topic){
        .type = type,
        .type_size = (uint32_t)type_size,
        .key_size = (uint32_t)key_size,
        .key = has_key ? key : NULL,
    };
    return 0;
}

#define ROW envelope
#define ENVELOPE_FIELDS(F)                                                                         \
    F(UPGRADE, kind, NUMBER(kind))                                                                 \
    F(UPGRADE, place, BELOW(place, ENVELOPE_STASHED))                                              \
    F(UPGRADE, id, NUMBER(id))                                                                     \
    F(UPGRADE, sender, NUMBER(sender))                                                             \
    F(UPGRADE, ask, NUMBER(ask))                                                                   \
    F(UPGRADE, timer, NUMBER(timer))                                                               \
    F(UPGRADE, cookie, NUMBER(cookie))                                                             \
    F(UPGRADE, sent_at, NUMBER(sent_at))                                                           \
    F(UPGRADE, flags, NUMBER(flags))                                                               \
    F(UPGRADE, attempt, NUMBER(attempt))                                                           \
    F(UPGRADE, hops, NUMBER(hops))                                                                 \
    F(UPGRADE, n_lost, NUMBER(n_lost))                                                             \
    F(UPGRADE, copied, NUMBER(copied))                                                             \
    F(UPGRADE, cursor, NUMBER(cursor))                                                             \
    F(UPGRADE, in_hand, NUMBER(in_hand))
const struct record ENVELOPE_RECORD = RECORD("envelope", ENVELOPE_FIELDS);

/* Whether it is a record that an inbox takes. */
static bool is_sound(const struct envelope *envelope)
{
    switch (envelope->kind) {
    case PROTOCOL_MESSAGE:
    case PROTOCOL_REPLIED:
        return !envelope->head;
    case PROTOCOL_ASK_FAILED:
    case PROTOCOL_TERMINATED:
    case PROTOCOL_ACCEPTED:
    case PROTOCOL_REFUSED:
    case PROTOCOL_FOUND:
    case PROTOCOL_ANSWER:
    case PROTOCOL_DONE:
        return envelope->head && envelope->head_size <= PROTOCOL_BODY_MAX;
    default:
        return false;
    }
}

int envelope_get(struct saved_reader *row, struct envelope **ret)
{
    struct envelope *envelope;
    struct topic topic;
    size_t head_size;
    int r = topic_get(row, &topic);
    const void *head = saved_get_bytes(row, &head_size);

    if (r < 0)
        return r;
    envelope =
        head_size > 0 ? envelope_new_answer(0, head, (uint32_t)head_size) : envelope_new(0, &topic);
    if (!envelope)
        return -ENOMEM;
    record_get(row, &ENVELOPE_RECORD, envelope);
    if (row->damaged || !is_sound(envelope))
        r = -EBADMSG;
    else
        r = payload_set(&envelope->payload, row->payload, row->payload_size);
    if (r < 0)
        (void)envelope_free(envelope);
    else
        *ret = envelope;
    return r;
}
