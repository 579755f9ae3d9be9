/* SPDX-License-Identifier: MIT */
#include "shared/protocol/protocol-parts.h"

#define PROTOCOL_HEX_DIGITS 32

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Not isalnum(3), which depends on the locale. */
static bool is_name_character(char c)
{
    return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
           c == '_' || c == ':' || c == '@' || c == '-';
}

bool protocol_name_valid(const char *name, size_t size)
{
    if (size == 0 || size > PROTOCOL_NAME_MAX || name[0] == '-' || name[0] == '.')
        return false;
    for (size_t i = 0; i < size; i++)
        if (!is_name_character(name[i]))
            return false;
    return true;
}

static char *format_hex(uint64_t value, char *at)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *at++ = "0123456789abcdef"[(value >> shift) & 0xf];
    return at;
}

char *protocol_id_format(const struct protocol_id *id, char *text)
{
    if (id->name[0] != '\0')
        memcpy(text, id->name, sizeof(id->name));
    else
        *format_hex(id->low, format_hex(id->high, text)) = '\0';
    return text;
}

/* 16 lower-case digits. */
static bool parse_hex(const char *text, uint64_t *ret)
{
    uint64_t value = 0;

    for (int i = 0; i < PROTOCOL_HEX_DIGITS / 2; i++) {
        char c = text[i];

        if (is_digit(c))
            value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *ret = value;
    return true;
}

int protocol_id_parse(struct protocol_id *ret, const char *text)
{
    size_t size = strnlen(text, PROTOCOL_ID_TEXT);

    if (!protocol_name_valid(text, size))
        return -EINVAL;
    *ret = (struct protocol_id){0};
    if (size == PROTOCOL_HEX_DIGITS && parse_hex(text, &ret->high) &&
        parse_hex(text + PROTOCOL_HEX_DIGITS / 2, &ret->low))
        return 0;
    ret->high = ret->low = 0;
    memcpy(ret->name, text, size);
    return 0;
}

static int finish_put(const struct wire_writer *writer)
{
    return (int)wire_written(writer);
}

static void put_id(struct wire_writer *writer, const struct protocol_id *id)
{
    /* Made ids are the rule and have none. */
    uint32_t size = id->name[0] == '\0' ? 0 : (uint32_t)strnlen(id->name, sizeof(id->name));

    wire_put_u64(writer, id->high);
    wire_put_u64(writer, id->low);
    part_put_bounded(writer, id->name, size, PROTOCOL_NAME_MAX);
}

/* The name is copied before it is looked at. One that spells an id of the supervisor's becomes that
 * id. */
static struct protocol_id get_id(struct wire_reader *reader)
{
    struct protocol_id id = {0};
    char name[PROTOCOL_ID_TEXT] = "";
    const void *bytes;
    uint32_t size;

    id.high = wire_get_u64(reader);
    id.low = wire_get_u64(reader);
    size = part_get_bounded(reader, &bytes, PROTOCOL_NAME_MAX);
    if (size == 0)
        return id;
    memcpy(name, bytes, size);
    if (strnlen(name, sizeof(name)) != size || protocol_id_parse(&id, name) < 0) {
        reader->failed = true;
        return (struct protocol_id){0};
    }
    return id;
}

static void put_payload(struct wire_writer *writer, const struct payload_wire *payload)
{
    if (payload->form == PAYLOAD_BLOB)
        payload_put_blob(writer, payload->size, payload->serial);
    else if (payload->size > UINT32_MAX)
        writer->failed = true;
    else
        payload_put_inline(writer, payload->data, (uint32_t)payload->size);
}

/*
 * For handlers that use a payload where it lies: zero bytes before it make inline data 8-aligned
 * (bodies are), and one after it ends text. On the wire: u8 count, so many zero bytes, payload, u8
 * zero.
 */
static void put_aligned_payload(struct wire_writer *writer, const struct payload_wire *payload)
{
    static const uint8_t zeros[7];
    size_t offset = (size_t)(writer->at - writer->start) + 1 + PAYLOAD_INLINE_OVERHEAD;
    uint8_t padding = (uint8_t)((8 - offset % 8) % 8);

    wire_put_u8(writer, padding);
    wire_put(writer, zeros, padding);
    put_payload(writer, payload);
    wire_put_u8(writer, 0);
}

static struct payload_wire get_aligned_payload(struct wire_reader *reader)
{
    struct payload_wire payload;
    uint8_t zeros[7], padding = part_get_enum(reader, sizeof(zeros));

    wire_get(reader, zeros, padding);
    payload = payload_get(reader);
    (void)part_get_enum(reader, 0);
    return payload;
}

int protocol_put_job(void *body, uint32_t size, const struct protocol_job *job)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, job->handle);
    wire_put_u32(&writer, job->attempt);
    wire_put_u32(&writer, job->max_attempts);
    wire_put_u64(&writer, job->timeout);
    put_id(&writer, &job->id);
    part_put_bounded(&writer, job->key, job->key_size, PROTOCOL_KEY_MAX);
    put_aligned_payload(&writer, &job->payload);
    return finish_put(&writer);
}

int protocol_get_job(const void *body, uint32_t size, struct protocol_job *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->handle = wire_get_u64(&reader);
    ret->attempt = wire_get_u32(&reader);
    ret->max_attempts = wire_get_u32(&reader);
    ret->timeout = wire_get_u64(&reader);
    ret->id = get_id(&reader);
    ret->key_size = part_get_bounded(&reader, &ret->key, PROTOCOL_KEY_MAX);
    ret->payload = get_aligned_payload(&reader);
    return wire_end(&reader);
}

int protocol_put_started(void *body, uint32_t size, const struct protocol_started *started)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, started->handle);
    wire_put_u32(&writer, started->attempt);
    wire_put_u32(&writer, started->state_sequence);
    return finish_put(&writer);
}

int protocol_get_started(const void *body, uint32_t size, struct protocol_started *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->handle = wire_get_u64(&reader);
    ret->attempt = wire_get_u32(&reader);
    ret->state_sequence = wire_get_u32(&reader);
    return wire_end(&reader);
}

int protocol_put_result(void *body, uint32_t size, const struct protocol_result *result)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, result->handle);
    wire_put_u32(&writer, result->attempt);
    wire_put_u8(&writer, (uint8_t)result->outcome);
    wire_put_i32(&writer, result->code);
    put_payload(&writer, &result->payload);
    return finish_put(&writer);
}

int protocol_get_result(const void *body, uint32_t size, struct protocol_result *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->handle = wire_get_u64(&reader);
    ret->attempt = wire_get_u32(&reader);
    ret->outcome = (enum protocol_outcome)part_get_enum(&reader, PROTOCOL_CANCELLED);
    ret->code = wire_get_i32(&reader);
    ret->payload = payload_get(&reader);
    return wire_end(&reader);
}

int protocol_put_crashed(void *body, uint32_t size, const struct protocol_crashed *crashed)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, crashed->handle);
    wire_put_u32(&writer, crashed->attempt);
    wire_put_i32(&writer, crashed->pid);
    wire_put_u8(&writer, crashed->signal);
    wire_put_u8(&writer, crashed->core_dumped);
    wire_put_u64(&writer, crashed->uptime);
    wire_put_u64(&writer, crashed->user);
    wire_put_u64(&writer, crashed->system);
    wire_put_u64(&writer, crashed->max_rss);
    part_put_bounded(&writer, crashed->command, crashed->command_size, PROTOCOL_COMMAND_MAX);
    return finish_put(&writer);
}

int protocol_get_crashed(const void *body, uint32_t size, struct protocol_crashed *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->handle = wire_get_u64(&reader);
    ret->attempt = wire_get_u32(&reader);
    ret->pid = wire_get_i32(&reader);
    ret->signal = part_get_enum(&reader, PROTOCOL_SIGNAL_MAX);
    ret->core_dumped = part_get_bool(&reader);
    ret->uptime = wire_get_u64(&reader);
    ret->user = wire_get_u64(&reader);
    ret->system = wire_get_u64(&reader);
    ret->max_rss = wire_get_u64(&reader);
    ret->command_size = part_get_bounded(&reader, &ret->command, PROTOCOL_COMMAND_MAX);
    if (ret->signal == 0 || ret->pid <= 0)
        return -EBADMSG;
    return wire_end(&reader);
}

int protocol_put_lookup(void *body, uint32_t size, const struct protocol_lookup *lookup)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, lookup->cookie);
    part_put_bounded(&writer, lookup->name, lookup->name_size, PROTOCOL_KEY_MAX);
    return finish_put(&writer);
}

int protocol_get_lookup(const void *body, uint32_t size, struct protocol_lookup *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->cookie = wire_get_u64(&reader);
    ret->name_size = part_get_bounded(&reader, &ret->name, PROTOCOL_KEY_MAX);
    return wire_end(&reader);
}

int protocol_put_submit(void *body, uint32_t size, const struct protocol_submit *submit)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, submit->cookie);
    wire_put_u64(&writer, submit->group);
    wire_put_u32(&writer, submit->flags);
    wire_put_u32(&writer, submit->max_retries);
    wire_put_u64(&writer, submit->timeout);
    wire_put_u64(&writer, submit->backoff_min);
    wire_put_u64(&writer, submit->backoff_max);
    wire_put_u8(&writer, submit->priority);
    wire_put_u64(&writer, submit->delay);
    wire_put_u64(&writer, submit->at);
    wire_put_u64(&writer, submit->wait);
    wire_put_u64(&writer, submit->deadline);
    part_put_bounded(&writer, submit->name, submit->name_size, PROTOCOL_NAME_MAX);
    part_put_bounded(&writer, submit->key, submit->key_size, PROTOCOL_KEY_MAX);
    put_payload(&writer, &submit->payload);
    return finish_put(&writer);
}

int protocol_get_submit(const void *body, uint32_t size, struct protocol_submit *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->cookie = wire_get_u64(&reader);
    ret->group = wire_get_u64(&reader);
    ret->flags = wire_get_u32(&reader);
    ret->max_retries = wire_get_u32(&reader);
    ret->timeout = wire_get_u64(&reader);
    ret->backoff_min = wire_get_u64(&reader);
    ret->backoff_max = wire_get_u64(&reader);
    ret->priority = wire_get_u8(&reader);
    ret->delay = wire_get_u64(&reader);
    ret->at = wire_get_u64(&reader);
    ret->wait = wire_get_u64(&reader);
    ret->deadline = wire_get_u64(&reader);
    ret->name_size = part_get_bounded(&reader, &ret->name, PROTOCOL_NAME_MAX);
    ret->key_size = part_get_bounded(&reader, &ret->key, PROTOCOL_KEY_MAX);
    ret->payload = payload_get(&reader);
    if ((ret->flags & ~(uint32_t)PROTOCOL_SUBMIT_KNOWN) != 0)
        return -EBADMSG;
    return wire_end(&reader);
}

int protocol_put_by_id(void *body, uint32_t size, const struct protocol_by_id *by_id)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, by_id->cookie);
    put_id(&writer, &by_id->id);
    return finish_put(&writer);
}

int protocol_get_by_id(const void *body, uint32_t size, struct protocol_by_id *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->cookie = wire_get_u64(&reader);
    ret->id = get_id(&reader);
    return wire_end(&reader);
}

int protocol_put_found(void *body, uint32_t size, const struct protocol_found *found)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, found->cookie);
    wire_put_u64(&writer, found->group);
    return finish_put(&writer);
}

int protocol_get_found(const void *body, uint32_t size, struct protocol_found *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->cookie = wire_get_u64(&reader);
    ret->group = wire_get_u64(&reader);
    return wire_end(&reader);
}

int protocol_put_accepted(void *body, uint32_t size, const struct protocol_accepted *accepted)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, accepted->cookie);
    put_id(&writer, &accepted->id);
    return finish_put(&writer);
}

int protocol_get_accepted(const void *body, uint32_t size, struct protocol_accepted *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->cookie = wire_get_u64(&reader);
    ret->id = get_id(&reader);
    return wire_end(&reader);
}

int protocol_put_refused(void *body, uint32_t size, const struct protocol_refused *refused)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, refused->cookie);
    wire_put_u32(&writer, refused->error);
    part_put_bounded(&writer, refused->reason, refused->reason_size, PROTOCOL_REASON_MAX);
    return finish_put(&writer);
}

int protocol_get_refused(const void *body, uint32_t size, struct protocol_refused *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->cookie = wire_get_u64(&reader);
    ret->error = wire_get_u32(&reader);
    ret->reason_size = part_get_bounded(&reader, &ret->reason, PROTOCOL_REASON_MAX);
    return wire_end(&reader);
}

int protocol_put_done(void *body, uint32_t size, const struct protocol_done *done)
{
    struct wire_writer writer = wire_writer(body, size);

    wire_put_u64(&writer, done->cookie);
    put_id(&writer, &done->id);
    wire_put_u8(&writer, (uint8_t)done->end);
    wire_put_i32(&writer, done->code);
    wire_put_u32(&writer, done->attempts);
    part_put_bounded(&writer, done->reason, done->reason_size, PROTOCOL_REASON_MAX);
    put_payload(&writer, &done->payload);
    return finish_put(&writer);
}

int protocol_get_done(const void *body, uint32_t size, struct protocol_done *ret)
{
    struct wire_reader reader = wire_reader(body, size);

    ret->cookie = wire_get_u64(&reader);
    ret->id = get_id(&reader);
    ret->end = (enum protocol_end)part_get_enum(&reader, PROTOCOL_END_TIMED_OUT);
    ret->code = wire_get_i32(&reader);
    ret->attempts = wire_get_u32(&reader);
    ret->reason_size = part_get_bounded(&reader, &ret->reason, PROTOCOL_REASON_MAX);
    ret->payload = payload_get(&reader);
    return wire_end(&reader);
}
