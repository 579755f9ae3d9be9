/* SPDX-License-Identifier: MIT */
#include "supervisor/message/envelope-save.h"

#include "shared/protocol/protocol.h"
#include <errno.h>

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

void envelope_put(struct saved_writer *row, const struct envelope *envelope)
{
    saved_put_number(row, envelope->kind);
    topic_put(row, &envelope->topic);
    saved_put_number(row, envelope->id);
    saved_put_number(row, envelope->sender);
    saved_put_number(row, envelope->ask);
    saved_put_number(row, envelope->timer);
    saved_put_number(row, envelope->cookie);
    saved_put_number(row, envelope->sent_at);
    saved_put_number(row, envelope->flags);
    saved_put_number(row, envelope->attempt);
    saved_put_number(row, envelope->error);
    saved_put_number(row, envelope->hops);
    saved_put_number(row, envelope->cursor);
    saved_put_number(row, envelope->in_hand);
}

static void get_fields(struct saved_reader *row, struct envelope *envelope)
{
    envelope->id = saved_get_number(row);
    envelope->sender = saved_get_number(row);
    envelope->ask = saved_get_number(row);
    envelope->timer = saved_get_number(row);
    envelope->cookie = saved_get_number(row);
    envelope->sent_at = saved_get_number(row);
    envelope->flags = (uint32_t)saved_get_below(row, UINT32_MAX);
    envelope->attempt = (uint32_t)saved_get_below(row, UINT32_MAX);
    envelope->error = (uint32_t)saved_get_below(row, UINT32_MAX);
    envelope->hops = (uint32_t)saved_get_below(row, UINT32_MAX);
    envelope->cursor = (uint32_t)saved_get_below(row, UINT32_MAX);
    envelope->in_hand = saved_get_below(row, 1);
}

/* Whether it is a record that an inbox takes. */
static bool is_sound(const struct envelope *envelope, size_t payload_size)
{
    switch (envelope->kind) {
    case PROTOCOL_MESSAGE:
    case PROTOCOL_REPLIED:
        return true;
    case PROTOCOL_ASK_FAILED:
    case PROTOCOL_TERMINATED:
        return payload_size <= PROTOCOL_REASON_MAX;
    default:
        return false;
    }
}

int envelope_get(struct saved_reader *row, struct envelope **ret)
{
    const uint16_t kind = (uint16_t)saved_get_below(row, UINT16_MAX);
    struct envelope *envelope;
    struct topic topic;
    int r = topic_get(row, &topic);

    if (r < 0)
        return r;
    envelope = envelope_new(kind, &topic);
    if (!envelope)
        return -ENOMEM;
    get_fields(row, envelope);
    if (row->damaged || !is_sound(envelope, row->payload_size))
        r = -EBADMSG;
    else
        r = payload_set(&envelope->payload, row->payload, row->payload_size);
    if (r < 0)
        (void)envelope_free(envelope);
    else
        *ret = envelope;
    return r;
}
