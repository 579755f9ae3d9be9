/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Typed put and get over a record's body. Both are sticky: after the first overrun every call does
 * nothing (get yields 0), and wire_end() tells once. Native byte order: both ends are one
 * machine.
 *
 * A reader's memory may be written by a hostile producer at the same time: each field is copied out
 * exactly once. wire_get_bytes() alone hands out a pointer into it: copy before looking inside.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct wire_writer {
    uint8_t *start, *at, *end;
    bool failed;
};

struct wire_reader {
    const uint8_t *at, *end;
    bool failed;
};

static inline struct wire_writer wire_writer(void *body, uint32_t size)
{
    return (struct wire_writer){
        .start = body, .at = body, .end = (uint8_t *)body + size, .failed = false};
}

static inline struct wire_reader wire_reader(const void *body, uint32_t size)
{
    return (struct wire_reader){.at = body, .end = (const uint8_t *)body + size, .failed = false};
}

static inline void wire_put(struct wire_writer *writer, const void *data, size_t size)
{
    if (writer->failed || (size_t)(writer->end - writer->at) < size) {
        writer->failed = true;
        return;
    }
    if (size > 0)
        memcpy(writer->at, data, size);
    writer->at += size;
}

static inline void wire_get(struct wire_reader *reader, void *data, size_t size)
{
    if (reader->failed || (size_t)(reader->end - reader->at) < size) {
        reader->failed = true;
        memset(data, 0, size);
        return;
    }
    memcpy(data, reader->at, size);
    reader->at += size;
}

#define WIRE_DEFINE(type, suffix)                                                                  \
    static inline void wire_put_##suffix(struct wire_writer *writer, type value)                   \
    {                                                                                              \
        wire_put(writer, &value, sizeof(value));                                                   \
    }                                                                                              \
    static inline type wire_get_##suffix(struct wire_reader *reader)                               \
    {                                                                                              \
        type value;                                                                                \
        wire_get(reader, &value, sizeof(value));                                                   \
        __asm__("" : "+r"(value)); /* forbids a second load from memory that may have changed */   \
        return value;                                                                              \
    }

WIRE_DEFINE(uint8_t, u8)
WIRE_DEFINE(uint16_t, u16)
WIRE_DEFINE(uint32_t, u32)
WIRE_DEFINE(int32_t, i32)
WIRE_DEFINE(uint64_t, u64)

#undef WIRE_DEFINE

/* A 32-bit length and so many bytes. */
static inline void wire_put_bytes(struct wire_writer *writer, const void *data, uint32_t size)
{
    wire_put_u32(writer, size);
    wire_put(writer, data, size);
}

/* Borrowed: points into the record. `*ret` is NULL and the size 0 after a failure. */
static inline uint32_t wire_get_bytes(struct wire_reader *reader, const void **ret)
{
    uint32_t size = wire_get_u32(reader);

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
static inline int64_t wire_written(const struct wire_writer *writer)
{
    return writer->failed ? -EMSGSIZE : writer->at - writer->start;
}

/* 0 when everything was there and everything was consumed, else -EBADMSG. */
static inline int wire_end(const struct wire_reader *reader)
{
    return reader->failed || reader->at != reader->end ? -EBADMSG : 0;
}
