/* SPDX-License-Identifier: MIT */
#include "shared/protocol/protocol-parts.h"

#define CONTENT_ALIGNMENT 8u

static const uint8_t zeros[CONTENT_ALIGNMENT];

static const void *skip(struct wire_reader *reader, size_t size)
{
    const void *at = reader->at;

    if (reader->failed || (size_t)(reader->end - reader->at) < size) {
        reader->failed = true;
        return NULL;
    }
    reader->at += size;
    return at;
}

static uint32_t padding_after(uint32_t size)
{
    return (CONTENT_ALIGNMENT - size % CONTENT_ALIGNMENT) % CONTENT_ALIGNMENT;
}

void protocol_write_content(struct wire_writer *writer, const struct protocol_content *content)
{
    const struct topic *topic = &content->topic;
    const struct payload_wire *payload = &content->payload;
    const bool blob = payload->form == PAYLOAD_BLOB;
    const uint32_t key_size = topic->key ? topic->key_size : 0;

    if (topic->type_size > TOPIC_TYPE_MAX || key_size > TOPIC_KEY_MAX) {
        writer->failed = true;
        return;
    }
    wire_put_u8(writer, (uint8_t)payload->form);
    wire_put_u8(writer, (uint8_t)topic->type_size);
    wire_put_u16(writer, topic->key ? (uint16_t)(key_size + 1) : 0);
    wire_put_u32(writer, 0);
    wire_put_u64(writer, payload->size);
    wire_put_u64(writer, blob ? payload->serial : 0);
    wire_put(writer, topic->type, topic->type_size);
    wire_put(writer, topic->key, key_size);
    wire_put(writer, zeros, padding_after(topic->type_size + key_size));
    if (!blob)
        wire_put(writer, payload->data, (size_t)payload->size);
    wire_put_u8(writer, 0);
}

static struct payload_wire get_wire(struct wire_reader *reader, uint8_t form)
{
    struct payload_wire wire = {.form = (enum payload_form)form};

    if (wire_get_u32(reader) != 0 || form > PAYLOAD_BLOB)
        reader->failed = true;
    wire.size = wire_get_u64(reader);
    wire.serial = wire_get_u64(reader);
    if (wire.size > PAYLOAD_BLOB_MAX || (form == PAYLOAD_INLINE && wire.serial != 0))
        reader->failed = true;
    return wire;
}

struct protocol_content protocol_read_content(struct wire_reader *reader)
{
    struct protocol_content content = {0};
    struct topic *topic = &content.topic;
    uint8_t form = wire_get_u8(reader);
    const char *key;
    uint16_t key_code;

    topic->type_size = wire_get_u8(reader);
    key_code = wire_get_u16(reader);
    if (topic->type_size > TOPIC_TYPE_MAX || key_code > TOPIC_KEY_MAX + 1)
        reader->failed = true;
    topic->key_size = key_code > 0 ? key_code - 1u : 0;
    content.payload = get_wire(reader, form);
    topic->type = skip(reader, topic->type_size);
    key = skip(reader, topic->key_size);
    topic->key = key_code > 0 ? key : NULL;
    (void)skip(reader, padding_after(topic->type_size + topic->key_size));
    if (content.payload.form == PAYLOAD_INLINE)
        content.payload.data = skip(reader, (size_t)content.payload.size);
    if (wire_get_u8(reader) != 0)
        reader->failed = true;
    return reader->failed ? (struct protocol_content){0} : content;
}

int protocol_get_content(const void *bytes, uint32_t size, struct protocol_content *ret,
                         uint32_t *ret_size)
{
    struct wire_reader reader = wire_reader(bytes, size);

    *ret = protocol_read_content(&reader);
    *ret_size = (uint32_t)(reader.at - (const uint8_t *)bytes);
    return reader.failed ? -EBADMSG : 0;
}

/* ---- actor to supervisor ---- */

int protocol_put_tell(void *body, uint32_t size, const struct protocol_tell *tell)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, tell->to);
    protocol_write_content(&writer, &tell->content);
    return (int)wire_written(&writer);
}

int protocol_get_tell(const void *body, uint32_t size, struct protocol_tell *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->to = wire_get_u64(&reader);
    ret->content = protocol_read_content(&reader);
    return wire_end(&reader);
}

int protocol_put_ask(void *body, uint32_t size, const struct protocol_ask *ask)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, ask->to);
    wire_put_u64(&writer, ask->cookie);
    wire_put_u64(&writer, ask->timeout);
    protocol_write_content(&writer, &ask->content);
    part_put_bounded(&writer, ask->wanted, ask->wanted_size, TOPIC_TYPE_MAX);
    return (int)wire_written(&writer);
}

int protocol_get_ask(const void *body, uint32_t size, struct protocol_ask *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->to = wire_get_u64(&reader);
    ret->cookie = wire_get_u64(&reader);
    ret->timeout = wire_get_u64(&reader);
    ret->content = protocol_read_content(&reader);
    ret->wanted_size = part_get_text(&reader, &ret->wanted, TOPIC_TYPE_MAX);
    return wire_end(&reader);
}

int protocol_put_reply(void *body, uint32_t size, const struct protocol_reply *reply)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, reply->ask);
    protocol_write_content(&writer, &reply->content);
    return (int)wire_written(&writer);
}

int protocol_get_reply(const void *body, uint32_t size, struct protocol_reply *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->ask = wire_get_u64(&reader);
    ret->content = protocol_read_content(&reader);
    return wire_end(&reader);
}

int protocol_put_forward(void *body, uint32_t size, const struct protocol_forward *forward)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, forward->message);
    wire_put_u64(&writer, forward->to);
    wire_put_u8(&writer, forward->new_key);
    wire_put_u8(&writer, forward->key != NULL);
    part_put_bounded(&writer, forward->key, forward->key ? forward->key_size : 0, TOPIC_KEY_MAX);
    return (int)wire_written(&writer);
}

int protocol_get_forward(const void *body, uint32_t size, struct protocol_forward *ret)
{
    struct wire_reader reader = wire_reader(body, size);
    bool has_key;

    ret->message = wire_get_u64(&reader);
    ret->to = wire_get_u64(&reader);
    ret->new_key = part_get_bool(&reader);
    has_key = part_get_bool(&reader);
    ret->key_size = part_get_text(&reader, &ret->key, has_key ? TOPIC_KEY_MAX : 0);
    if (!has_key)
        ret->key = NULL;
    return wire_end(&reader);
}

int protocol_put_leave(void *body, uint32_t size, const struct protocol_leave *leave)
{
    struct wire_writer writer = wire_writer(body, size);

    part_put_bounded(&writer, leave->reason, leave->reason_size, PROTOCOL_REASON_MAX);
    return (int)wire_written(&writer);
}

int protocol_get_leave(const void *body, uint32_t size, struct protocol_leave *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->reason_size = part_get_text(&reader, &ret->reason, PROTOCOL_REASON_MAX);
    return wire_end(&reader);
}

int protocol_put_verdict(void *body, uint32_t size, const struct protocol_verdict *verdict)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, verdict->message);
    wire_put_i32(&writer, verdict->code);
    part_put_bounded(&writer, verdict->text, verdict->text_size, PROTOCOL_REASON_MAX);
    return (int)wire_written(&writer);
}

int protocol_get_verdict(const void *body, uint32_t size, struct protocol_verdict *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->message = wire_get_u64(&reader);
    ret->code = wire_get_i32(&reader);
    ret->text_size = part_get_text(&reader, &ret->text, PROTOCOL_REASON_MAX);
    return wire_end(&reader);
}

int protocol_put_stash(void *body, uint32_t size, const struct protocol_stash *stash)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, stash->message);
    part_put_flags(&writer, stash->flags);
    return (int)wire_written(&writer);
}

int protocol_get_stash(const void *body, uint32_t size, struct protocol_stash *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->message = wire_get_u64(&reader);
    ret->flags = part_get_flags(&reader, PROTOCOL_STASH_IN_HAND);
    return wire_end(&reader);
}

/* ---- supervisor to actor ---- */

void protocol_put_message_head(struct wire_writer *writer, const struct protocol_message *message)
{
    wire_put_u64(writer, message->id);
    wire_put_u64(writer, message->sender);
    wire_put_u64(writer, message->ask);
    wire_put_u64(writer, message->timer);
    wire_put_u64(writer, message->sent_at);
    wire_put_u32(writer, message->flags);
    wire_put_u32(writer, message->attempt);
}

int protocol_put_message(void *body, uint32_t size, const struct protocol_message *message)
{
    struct wire_writer writer = wire_writer(body, size);

    protocol_put_message_head(&writer, message);
    protocol_write_content(&writer, &message->content);
    return (int)wire_written(&writer);
}

int protocol_get_message(const void *body, uint32_t size, struct protocol_message *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->id = wire_get_u64(&reader);
    ret->sender = wire_get_u64(&reader);
    ret->ask = wire_get_u64(&reader);
    ret->timer = wire_get_u64(&reader);
    ret->sent_at = wire_get_u64(&reader);
    ret->flags = wire_get_u32(&reader);
    ret->attempt = wire_get_u32(&reader);
    ret->content = protocol_read_content(&reader);
    return wire_end(&reader);
}

int protocol_put_replied(void *body, uint32_t size, const struct protocol_replied *replied)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, replied->cookie);
    wire_put_u64(&writer, replied->from);
    protocol_write_content(&writer, &replied->content);
    return (int)wire_written(&writer);
}

int protocol_get_replied(const void *body, uint32_t size, struct protocol_replied *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->cookie = wire_get_u64(&reader);
    ret->from = wire_get_u64(&reader);
    ret->content = protocol_read_content(&reader);
    return wire_end(&reader);
}

int protocol_put_terminated(void *body, uint32_t size, const struct protocol_terminated *what)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, what->reference);
    part_put_bounded(&writer, what->cause, what->cause_size, PROTOCOL_REASON_MAX);
    return (int)wire_written(&writer);
}

int protocol_get_terminated(const void *body, uint32_t size, struct protocol_terminated *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->reference = wire_get_u64(&reader);
    ret->cause_size = part_get_text(&reader, &ret->cause, PROTOCOL_REASON_MAX);
    return wire_end(&reader);
}
