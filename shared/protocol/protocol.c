/* SPDX-License-Identifier: MIT */
/* Puts and gets of all records, made from their tables. */
#include "shared/base/cleanup.h"
#include "shared/protocol/protocol-requests.h"
#include "shared/protocol/wire.h"

#define ALIGNMENT 8u

/* ---- fields of variable size: in most records, most of them are empty ---- */

static inline void put_bytes(struct wire_writer *writer, const void *bytes, uint32_t size,
                             uint32_t max)
{
    wire_put_u32(writer, size);
    if (size == 0)
        return;
    if (size > max)
        writer->failed = true;
    wire_put_bytes(writer, bytes, size);
}

static inline const void *get_bytes(struct wire_reader *reader, uint32_t *ret_size, uint32_t max)
{
    *ret_size = wire_get_u32(reader);
    if (*ret_size == 0)
        return reader->at;
    if (*ret_size > max)
        reader->failed = true;
    return wire_get_bytes(reader, *ret_size);
}

static void put_optional(struct wire_writer *writer, const void *bytes, uint32_t size, uint32_t max)
{
    if (bytes && size > max)
        writer->failed = true;
    wire_put_u32(writer, bytes ? size + 1 : 0);
    wire_put_bytes(writer, bytes, bytes ? size : 0);
}

static const void *get_optional(struct wire_reader *reader, uint32_t *ret_size, uint32_t max)
{
    const uint32_t code = wire_get_u32(reader);

    if (code > max + 1)
        reader->failed = true;
    *ret_size = code > 0 ? code - 1 : 0;
    return code > 0 ? wire_get_bytes(reader, *ret_size) : NULL;
}

static void put_topic(struct wire_writer *writer, const struct topic *topic)
{
    put_bytes(writer, topic->type, topic->type_size, TOPIC_TYPE_MAX);
    put_optional(writer, topic->key, topic->key_size, TOPIC_KEY_MAX);
}

static void get_topic(struct wire_reader *reader, struct topic *ret)
{
    ret->type = get_bytes(reader, &ret->type_size, TOPIC_TYPE_MAX);
    ret->key = get_optional(reader, &ret->key_size, TOPIC_KEY_MAX);
}

static inline void put_id(struct wire_writer *writer, const struct protocol_id *id)
{
    /* Most ids are made by the supervisor and have no name. */
    uint32_t size = id->name[0] == '\0' ? 0 : (uint32_t)strnlen(id->name, sizeof(id->name));

    wire_put_u64(writer, id->high);
    wire_put_u64(writer, id->low);
    put_bytes(writer, id->name, size, PROTOCOL_NAME_MAX);
}

/* Copies the name before looking at it. A name in the form of an id made by the supervisor is read
 * as that id. */
static void get_name(struct wire_reader *reader, struct protocol_id *ret, const char *bytes,
                     uint32_t size)
{
    char name[PROTOCOL_ID_TEXT] = "";

    memcpy(name, bytes, size);
    if (strnlen(name, sizeof(name)) != size || protocol_id_parse(ret, name) < 0)
        reader->failed = true;
}

static inline void get_id(struct wire_reader *reader, struct protocol_id *ret)
{
    const char *name;
    uint32_t size;

    *ret = (struct protocol_id){0};
    ret->high = wire_get_u64(reader);
    ret->low = wire_get_u64(reader);
    name = get_bytes(reader, &size, PROTOCOL_NAME_MAX);
    if (size > 0 && name)
        get_name(reader, ret, name, size);
}

/* ---- fields that admit only some values ---- */

static inline uint32_t get_within(struct wire_reader *reader, uint32_t value, uint32_t first,
                                  uint32_t last)
{
    if (value < first || value > last)
        reader->failed = true;
    return value;
}

static inline uint32_t get_flags(struct wire_reader *reader, uint32_t known)
{
    const uint32_t flags = wire_get_u32(reader);

    if ((flags & ~known) != 0)
        reader->failed = true;
    return flags;
}

/* ---- payloads ---- */

/* Zero bytes up to a multiple of ALIGNMENT from the record's beginning. */
static inline uint32_t padding_at(const uint8_t *start, const uint8_t *at)
{
    return (uint32_t)(start - at) % ALIGNMENT;
}

static inline void put_padding(struct wire_writer *writer)
{
    static const uint8_t zeros[ALIGNMENT];
    const uint32_t size = padding_at(writer->start, writer->at);

    if (writer->end - writer->at >= (ptrdiff_t)ALIGNMENT) {
        memcpy(writer->at, zeros, ALIGNMENT); /* a single store */
        writer->at += size;
    } else {
        wire_put_bytes(writer, zeros, size);
    }
}

static inline void put_payload_head(struct wire_writer *writer, const struct payload_wire *payload)
{
    wire_put_u64(writer, payload->size);
    wire_put_u64(writer, payload->form == PAYLOAD_BLOB ? payload->serial : 0);
    wire_put_u8(writer, (uint8_t)payload->form);
}

static inline void put_payload_tail(struct wire_writer *writer, const struct payload_wire *payload)
{
    put_padding(writer);
    if (payload->form == PAYLOAD_INLINE)
        wire_put_bytes(writer, payload->data, (size_t)payload->size);
    wire_put_u8(writer, 0);
}

static inline void get_payload_head(struct wire_reader *reader, struct payload_wire *ret)
{
    ret->size = wire_get_u64(reader);
    ret->serial = wire_get_u64(reader);
    ret->form = (enum payload_form)get_within(reader, wire_get_u8(reader), 0, PAYLOAD_BLOB);
    if (ret->size > PAYLOAD_BLOB_MAX || (ret->form == PAYLOAD_INLINE && ret->serial != 0))
        reader->failed = true;
}

static inline void get_payload_tail(struct wire_reader *reader, struct payload_wire *ret)
{
    (void)wire_get_bytes(reader, padding_at(reader->start, reader->at));
    ret->data = ret->form == PAYLOAD_INLINE ? wire_get_bytes(reader, (size_t)ret->size) : NULL;
    (void)get_within(reader, wire_get_u8(reader), 0, 0);
}

static inline void put_payload(struct wire_writer *writer, const struct payload_wire *payload)
{
    put_payload_head(writer, payload);
    put_payload_tail(writer, payload);
}

static inline void get_payload(struct wire_reader *reader, struct payload_wire *ret)
{
    get_payload_head(reader, ret);
    get_payload_tail(reader, ret);
}

static void put_content(struct wire_writer *writer, const struct protocol_content *content)
{
    const struct topic *topic = &content->topic;
    const uint32_t key_size = topic->key ? topic->key_size : 0;

    if (topic->type_size > TOPIC_TYPE_MAX || key_size > TOPIC_KEY_MAX)
        writer->failed = true;
    put_payload_head(writer, &content->payload);
    wire_put_u8(writer, (uint8_t)topic->type_size);
    wire_put_u16(writer, topic->key ? (uint16_t)(key_size + 1) : 0);
    wire_put_u32(writer, 0);
    wire_put_bytes(writer, topic->type, topic->type_size);
    wire_put_bytes(writer, topic->key, key_size);
    put_payload_tail(writer, &content->payload);
}

static void get_content(struct wire_reader *reader, struct protocol_content *ret)
{
    struct topic *topic = &ret->topic;
    uint32_t key_code;

    get_payload_head(reader, &ret->payload);
    topic->type_size = get_within(reader, wire_get_u8(reader), 0, TOPIC_TYPE_MAX);
    key_code = get_within(reader, wire_get_u16(reader), 0, TOPIC_KEY_MAX + 1);
    (void)get_within(reader, wire_get_u32(reader), 0, 0);
    topic->key_size = key_code > 0 ? key_code - 1u : 0;
    topic->type = wire_get_bytes(reader, topic->type_size);
    topic->key = key_code > 0 ? wire_get_bytes(reader, topic->key_size) : NULL;
    get_payload_tail(reader, &ret->payload);
}

/* ---- the words of the tables: bytes of fixed size, put, get ---- */

#define SIZE_u8            1
#define SIZE_u32           4
#define SIZE_i32           4
#define SIZE_u64           8
#define SIZE_usec          8
#define SIZE_enumeration   1
#define SIZE_flags         4
#define SIZE_signal_number 1
#define SIZE_process_id    4
#define SIZE_bytes         4
#define SIZE_optional      4
#define SIZE_topic         8
#define SIZE_id            20
#define SIZE_payload       18
#define SIZE_content       25

#define PUT_u8(member)                      wire_put_u8(&writer, record->member);
#define PUT_u32(member)                     wire_put_u32(&writer, record->member);
#define PUT_i32(member)                     wire_put_i32(&writer, record->member);
#define PUT_u64(member)                     wire_put_u64(&writer, record->member);
#define PUT_usec(member)                    wire_put_u64(&writer, record->member);
#define PUT_enumeration(member, type, last) wire_put_u8(&writer, (uint8_t)record->member);
#define PUT_flags(member, known)            wire_put_u32(&writer, record->member);
#define PUT_signal_number(member)           wire_put_u8(&writer, record->member);
#define PUT_process_id(member)              wire_put_i32(&writer, record->member);
#define PUT_bytes(member, max)              put_bytes(&writer, record->member, record->member##_size, max);
#define PUT_optional(member, max)           put_optional(&writer, record->member, record->member##_size, max);
#define PUT_topic(member)                   put_topic(&writer, &record->member);
#define PUT_id(member)                      put_id(&writer, &record->member);
#define PUT_payload(member)                 put_payload(&writer, &record->member);
#define PUT_content(member)                 put_content(&writer, &record->member);

#define GET_u8(member)   ret->member = wire_get_u8(&reader);
#define GET_u32(member)  ret->member = wire_get_u32(&reader);
#define GET_i32(member)  ret->member = wire_get_i32(&reader);
#define GET_u64(member)  ret->member = wire_get_u64(&reader);
#define GET_usec(member) ret->member = wire_get_u64(&reader);
#define GET_enumeration(member, type, last)                                                        \
    ret->member = (type)get_within(&reader, wire_get_u8(&reader), 0, last);
#define GET_flags(member, known) ret->member = get_flags(&reader, known);
#define GET_signal_number(member)                                                                  \
    ret->member = (uint8_t)get_within(&reader, wire_get_u8(&reader), 1, PROTOCOL_SIGNAL_MAX);
#define GET_process_id(member)                                                                     \
    ret->member = (int32_t)get_within(&reader, wire_get_u32(&reader), 1, INT32_MAX);
#define GET_bytes(member, max)    ret->member = get_bytes(&reader, &ret->member##_size, max);
#define GET_optional(member, max) ret->member = get_optional(&reader, &ret->member##_size, max);
#define GET_topic(member)         get_topic(&reader, &ret->member);
#define GET_id(member)            get_id(&reader, &ret->member);
#define GET_payload(member)       get_payload(&reader, &ret->member);
#define GET_content(member)       get_content(&reader, &ret->member);

#define SIZE(kind, ...) +SIZE_##kind /* NOLINT(bugprone-macro-parentheses): a sum's term */
#define PUT(kind, ...)  PUT_##kind(__VA_ARGS__)
#define GET(kind, ...)  GET_##kind(__VA_ARGS__)

#define DEFINE(name)                                                                               \
    int protocol_put_##name(void *body, uint32_t size, const struct protocol_##name *record)       \
    {                                                                                              \
        const uint32_t fixed = 0 PROTOCOL_FIELDS_##name(SIZE);                                     \
        struct wire_writer writer = wire_writer(body, size, fixed);                                \
                                                                                                   \
        if (size < fixed)                                                                          \
            return -EMSGSIZE;                                                                      \
        PROTOCOL_FIELDS_##name(PUT);                                                               \
        return wire_written(&writer);                                                              \
    }                                                                                              \
                                                                                                   \
    int protocol_get_##name(const void *body, uint32_t size, struct protocol_##name *ret)          \
    {                                                                                              \
        const uint32_t fixed = 0 PROTOCOL_FIELDS_##name(SIZE);                                     \
        struct wire_reader reader = wire_reader(body, size, fixed);                                \
                                                                                                   \
        if (size < fixed)                                                                          \
            goto failed;                                                                           \
        PROTOCOL_FIELDS_##name(GET);                                                               \
        if (wire_end(&reader) == 0)                                                                \
            return 0;                                                                              \
    failed:                                                                                        \
        *ret = (struct protocol_##name){0};                                                        \
        return -EBADMSG;                                                                           \
    }

PROTOCOL_RECORDS(DEFINE)

/* ---- contents, which are copied between records in one piece ---- */

_Static_assert(PROTOCOL_TELL_CONTENT + SIZE_content == 0 PROTOCOL_FIELDS_tell(SIZE), "layout");
_Static_assert(PROTOCOL_REPLY_CONTENT + SIZE_content == 0 PROTOCOL_FIELDS_reply(SIZE), "layout");
_Static_assert(PROTOCOL_MESSAGE_CONTENT == 0 PROTOCOL_HEAD_message(SIZE), "layout");
_Static_assert(PROTOCOL_REPLIED_CONTENT + SIZE_content == 0 PROTOCOL_FIELDS_replied(SIZE),
               "layout");

int protocol_get_content(const void *bytes, uint32_t size, struct protocol_content *ret,
                         uint32_t *ret_size)
{
    struct wire_reader reader = wire_reader(bytes, size, SIZE_content);

    if (size < SIZE_content)
        return -EBADMSG;
    get_content(&reader, ret);
    *ret_size = (uint32_t)(reader.at - reader.start);
    return reader.failed ? -EBADMSG : 0;
}

void protocol_put_message_head(void *body, const struct protocol_message *record)
{
    struct wire_writer writer =
        wire_writer(body, PROTOCOL_MESSAGE_CONTENT, PROTOCOL_MESSAGE_CONTENT);

    PROTOCOL_HEAD_message(PUT);
}

/* ---- names ---- */

const char *protocol_cause_name(enum protocol_cause cause)
{
    static const char *const names[] = {
        [PROTOCOL_CAUSE_NONE] = "none",
        [PROTOCOL_CAUSE_REQUESTED] = "requested",
        [PROTOCOL_CAUSE_WITHDRAWN] = "withdrawn",
        [PROTOCOL_CAUSE_DEADLINE] = "deadline",
        [PROTOCOL_CAUSE_GROUP] = "group",
        [PROTOCOL_CAUSE_ATTEMPTS] = "attempts",
        [PROTOCOL_CAUSE_PAYLOAD_LOST] = "payload_lost",
        [PROTOCOL_CAUSE_DEPENDENCY] = "dependency",
    };

    return (unsigned)cause < ELEMENTS(names) ? names[cause] : "unknown";
}
