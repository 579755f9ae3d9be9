/* SPDX-License-Identifier: MIT */
#include "supervisor/message/envelope.h"

#include "shared/base/fault.h"
#include <stdlib.h>

struct envelope_block {
    struct envelope envelope;
    char bytes[]; /* type, then key */
};

struct envelope *envelope_new(uint16_t kind, const struct topic *topic)
{
    struct envelope_block *block = NULL;
    struct envelope *envelope;

    if (fault_inject("envelope") == 0)
        block = calloc(1, sizeof(*block) + topic->type_size + topic->key_size + 1);
    if (!block)
        return NULL;
    envelope = &block->envelope;
    list_init(&envelope->link);
    envelope->kind = kind;
    envelope->payload = (struct payload)PAYLOAD_NULL;
    envelope->topic = topic_copy(topic, block->bytes);
    return envelope;
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
    return bytes_of(&envelope->topic, envelope->payload.size, envelope->payload.fd >= 0);
}

uint64_t envelope_bytes_of(const struct protocol_content *content)
{
    return bytes_of(&content->topic, content->payload.size, content->payload.form == PAYLOAD_BLOB);
}
