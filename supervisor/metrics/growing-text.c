/* SPDX-License-Identifier: MIT */
#include "supervisor/metrics/growing-text.h"

#include <stdlib.h>

#define FIRST_ROOM ((size_t)16 << 10)
#define DIGITS_MAX 20 /* of 64 bits */

static bool make_room(struct growing_text *text, size_t size)
{
    size_t room = text->room > 0 ? text->room : FIRST_ROOM;
    char *bytes;

    while (room - text->size < size)
        room *= 2;
    bytes = realloc(text->bytes, room);
    if (!bytes) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->room = room;
    return true;
}

void growing_text_extend(struct growing_text *text, const char *bytes, size_t size)
{
    if (!text->failed && make_room(text, size))
        growing_text_add(text, bytes, size);
}

void growing_text_add_number(struct growing_text *text, int64_t value)
{
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char digits[DIGITS_MAX + 1], *first = digits + sizeof(digits);

    do {
        *--first = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        *--first = '-';
    growing_text_add(text, first, (size_t)(digits + sizeof(digits) - first));
}

char *growing_text_take(struct growing_text *text, size_t *ret_size)
{
    char *bytes;

    growing_text_add_char(text, '\0');
    bytes = text->failed ? NULL : text->bytes;
    if (!bytes)
        free(text->bytes);
    else if (ret_size)
        *ret_size = text->size - 1;
    *text = (struct growing_text){0};
    return bytes;
}
