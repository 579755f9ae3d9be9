/* SPDX-License-Identifier: MIT */
#pragma once

/* Writes the fields of a record into its body, and reads them back. Native byte order, since both
 * ends are on one machine.
 *
 * Room for all fields of fixed size is checked once, when a writer or reader is made; bytes of
 * variable size are checked one by one. A writer or reader that runs over stays failed, ignores
 * further bytes of variable size, and reports the failure at the end.
 *
 * A reader's memory may be written by a hostile producer at the same time: each field is copied out
 * exactly once. wire_get_bytes() alone returns a pointer into it: copy before looking inside. */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* `end` leaves room for the remaining fixed fields. */
struct wire_writer {
    uint8_t *start, *at, *end;
    bool failed;
};

struct wire_reader {
    const uint8_t *start, *at, *end;
    bool failed;
};

/* `fixed` is the sum of all fixed fields, and not above `size`. */
static inline struct wire_writer wire_writer(void *body, uint32_t size, uint32_t fixed)
{
    return (struct wire_writer){.start = body, .at = body, .end = (uint8_t *)body + size - fixed};
}

static inline struct wire_reader wire_reader(const void *body, uint32_t size, uint32_t fixed)
{
    return (struct wire_reader){
        .start = body, .at = body, .end = (const uint8_t *)body + size - fixed};
}

#define WIRE_DEFINE(type, suffix)                                                                  \
    static inline void wire_put_##suffix(struct wire_writer *writer, type value)                   \
    {                                                                                              \
        memcpy(writer->at, &value, sizeof(value));                                                 \
        writer->at += sizeof(value);                                                               \
        writer->end += sizeof(value);                                                              \
    }                                                                                              \
    static inline type wire_get_##suffix(struct wire_reader *reader)                               \
    {                                                                                              \
        type value;                                                                                \
        memcpy(&value, reader->at, sizeof(value));                                                 \
        __asm__("" : "+r"(value)); /* forbids a second load from memory that may have changed */   \
        reader->at += sizeof(value);                                                               \
        reader->end += sizeof(value);                                                              \
        return value;                                                                              \
    }

WIRE_DEFINE(uint8_t, u8)
WIRE_DEFINE(uint16_t, u16)
WIRE_DEFINE(uint32_t, u32)
WIRE_DEFINE(int32_t, i32)
WIRE_DEFINE(uint64_t, u64)

#undef WIRE_DEFINE

static inline void wire_put_bytes(struct wire_writer *writer, const void *data, size_t size)
{
    if (writer->failed || (size_t)(writer->end - writer->at) < size) {
        writer->failed = true;
        return;
    }
    if (size > 0)
        memcpy(writer->at, data, size);
    writer->at += size;
}

/* Borrowed: points into the record. NULL after a failure. */
static inline const void *wire_get_bytes(struct wire_reader *reader, size_t size)
{
    const void *bytes = reader->at;

    if (reader->failed || (size_t)(reader->end - reader->at) < size) {
        reader->failed = true;
        return NULL;
    }
    reader->at += size;
    return bytes;
}

/* Bytes written, or -EMSGSIZE if something did not fit. */
static inline int wire_written(const struct wire_writer *writer)
{
    return writer->failed ? -EMSGSIZE : (int)(writer->at - writer->start);
}

/* 0 when everything was there and everything was consumed, else -EBADMSG. */
static inline int wire_end(const struct wire_reader *reader)
{
    return reader->failed || reader->at != reader->end ? -EBADMSG : 0;
}
