/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the put and get of protocol.c, protocol-actors.c and protocol-requests.c are made of. As in
 * message.h: a writer or reader fails for good, and says so at the end.
 */

#include "shared/protocol/protocol-actors.h"

/* Bytes of at most `max`; a writer or reader that is offered more fails. */
static inline void part_put_bounded(struct wire_writer *writer, const void *data, uint32_t size,
                                    uint32_t max)
{
    if (size > max)
        writer->failed = true;
    wire_put_bytes(writer, data, size);
}

static inline uint32_t part_get_bounded(struct wire_reader *reader, const void **ret, uint32_t max)
{
    uint32_t size = wire_get_bytes(reader, ret);

    if (size <= max)
        return size;
    reader->failed = true;
    *ret = NULL;
    return 0;
}

/* Not text until it is copied and looked at. */
static inline uint32_t part_get_text(struct wire_reader *reader, const char **ret, uint32_t max)
{
    const void *bytes;
    uint32_t size = part_get_bounded(reader, &bytes, max);

    *ret = bytes;
    return size;
}

static inline void part_put_flags(struct wire_writer *writer, uint32_t flags)
{
    wire_put_u64(writer, flags);
}

/* Bits that nobody knows are impossible. */
static inline uint32_t part_get_flags(struct wire_reader *reader, uint32_t known)
{
    uint64_t flags = wire_get_u64(reader);

    if ((flags & ~(uint64_t)known) != 0)
        reader->failed = true;
    return reader->failed ? 0 : (uint32_t)flags;
}

/* An enumeration travels as u8; values above `last` are impossible. */
static inline uint8_t part_get_enum(struct wire_reader *reader, uint8_t last)
{
    uint8_t value = wire_get_u8(reader);

    if (value <= last)
        return value;
    reader->failed = true;
    return 0;
}

static inline bool part_get_bool(struct wire_reader *reader)
{
    return part_get_enum(reader, 1) == 1;
}

/* ---- protocol-actors.c ---- */

/* A content where the writer or reader is; what is read is borrowed, and all zero after a failure.
 */
void protocol_write_content(struct wire_writer *writer, const struct protocol_content *content);
struct protocol_content protocol_read_content(struct wire_reader *reader);
