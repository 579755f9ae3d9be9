/* SPDX-License-Identifier: MIT */
#pragma once

/* Text that grows at its end: megabytes of short pieces, for which stdio is too slow. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Valid when zeroed. */
struct growing_text {
    char *bytes; /* owned; not terminated */
    size_t size, room;
    bool failed; /* out of memory: nothing more is added */
};

/* These copy their argument to the end. Without memory they set `failed`. */

/* Adds what there is no room for yet. */
void growing_text_extend(struct growing_text *text, const char *bytes, size_t size);

static inline void growing_text_add(struct growing_text *text, const char *bytes, size_t size)
{
    if (size > text->room - text->size) {
        growing_text_extend(text, bytes, size);
    } else if (size > 0) {
        memcpy(text->bytes + text->size, bytes, size);
        text->size += size;
    }
}

static inline void growing_text_add_string(struct growing_text *text, const char *string)
{
    growing_text_add(text, string, strlen(string));
}

static inline void growing_text_add_char(struct growing_text *text, char c)
{
    growing_text_add(text, &c, 1);
}

/* In decimal. */
void growing_text_add_number(struct growing_text *text, int64_t value);

/* Returns the text, terminated, which the caller frees, and its size in `*ret_size` (may be NULL).
 * NULL: out of memory. `text` is empty then. */
char *growing_text_take(struct growing_text *text, size_t *ret_size);
