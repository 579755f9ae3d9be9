/* SPDX-License-Identifier: MIT */
#pragma once

/* Bytes that grow at their end. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Valid when zeroed. */
struct buffer {
    char *bytes; /* owned; not terminated */
    size_t size, room;
    bool failed; /* out of memory: nothing more is added */
};

/* clang-format off */
#define BUFFER_NULL {0}
/* clang-format on */

/* Idempotent. */
void buffer_deinit(struct buffer *buffer);

/* These copy their argument to the end. Without memory they set `failed`. */

/* Adds what there is no room for yet. */
void buffer_extend(struct buffer *buffer, const char *bytes, size_t size);

/* For megabytes of short pieces, for which stdio is too slow. */
static inline void buffer_add(struct buffer *buffer, const char *bytes, size_t size)
{
    if (size > buffer->room - buffer->size) {
        buffer_extend(buffer, bytes, size);
    } else if (size > 0) {
        memcpy(buffer->bytes + buffer->size, bytes, size);
        buffer->size += size;
    }
}

static inline void buffer_add_string(struct buffer *buffer, const char *string)
{
    buffer_add(buffer, string, strlen(string));
}

static inline void buffer_add_char(struct buffer *buffer, char c)
{
    buffer_add(buffer, &c, 1);
}

/* In decimal. */
void buffer_add_number(struct buffer *buffer, int64_t value);

/* Adds all that can be read from a file or pipe. Returns 0 or -errno. */
int buffer_read(struct buffer *buffer, int fd);

/* Returns the text, terminated, which the caller frees, and its size in `*ret_size` (may be NULL).
 * NULL: out of memory. The buffer is empty then. */
char *buffer_take(struct buffer *buffer, size_t *ret_size);
