/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Typed put and get over a record's body. Both are sticky: after the first overrun every call does
 * nothing (get yields 0), and message_end() tells once. Native byte order: both ends are one
 * machine.
 *
 * A reader's memory may be written by a hostile producer at the same time: each field is copied out
 * exactly once. message_get_bytes() alone hands out a pointer into it: copy before looking inside.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct message_writer {
    uint8_t *start, *at, *end;
    bool failed;
};

struct message_reader {
    const uint8_t *at, *end;
    bool failed;
};

static inline struct message_writer message_writer(void *body, uint32_t size)
{
    return (struct message_writer){
        .start = body, .at = body, .end = (uint8_t *)body + size, .failed = false};
}

static inline struct message_reader message_reader(const void *body, uint32_t size)
{
    return (struct message_reader){
        .at = body, .end = (const uint8_t *)body + size, .failed = false};
}

static inline void message_put(struct message_writer *writer, const void *data, size_t size)
{
    if (writer->failed || (size_t)(writer->end - writer->at) < size) {
        writer->failed = true;
        return;
    }
    if (size > 0)
        memcpy(writer->at, data, size);
    writer->at += size;
}

static inline void message_get(struct message_reader *reader, void *data, size_t size)
{
    if (reader->failed || (size_t)(reader->end - reader->at) < size) {
        reader->failed = true;
        memset(data, 0, size);
        return;
    }
    memcpy(data, reader->at, size);
    reader->at += size;
}

#define MESSAGE_DEFINE(type, suffix)                                                               \
    static inline void message_put_##suffix(struct message_writer *writer, type value)             \
    {                                                                                              \
        message_put(writer, &value, sizeof(value));                                                \
    }                                                                                              \
    static inline type message_get_##suffix(struct message_reader *reader)                         \
    {                                                                                              \
        type value;                                                                                \
        message_get(reader, &value, sizeof(value));                                                \
        __asm__("" : "+r"(value)); /* forbids a second load from memory that may have changed */   \
        return value;                                                                              \
    }

MESSAGE_DEFINE(uint8_t, u8)
MESSAGE_DEFINE(uint16_t, u16)
MESSAGE_DEFINE(uint32_t, u32)
MESSAGE_DEFINE(int32_t, i32)
MESSAGE_DEFINE(uint64_t, u64)

#undef MESSAGE_DEFINE

/* A 32-bit length and so many bytes. */
static inline void message_put_bytes(struct message_writer *writer, const void *data, uint32_t size)
{
    message_put_u32(writer, size);
    message_put(writer, data, size);
}

/* Borrowed: points into the record. `*ret` is NULL and the size 0 after a failure. */
static inline uint32_t message_get_bytes(struct message_reader *reader, const void **ret)
{
    uint32_t size = message_get_u32(reader);

    if (reader->failed || (size_t)(reader->end - reader->at) < size) {
        reader->failed = true;
        *ret = NULL;
        return 0;
    }
    *ret = reader->at;
    reader->at += size;
    return size;
}

/* Bytes written so far, or -EMSGSIZE if something did not fit. */
static inline int64_t message_written(const struct message_writer *writer)
{
    return writer->failed ? -EMSGSIZE : writer->at - writer->start;
}

/* 0 when everything was there and everything was consumed, else -EBADMSG. */
static inline int message_end(const struct message_reader *reader)
{
    return reader->failed || reader->at != reader->end ? -EBADMSG : 0;
}
