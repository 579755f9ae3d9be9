/* SPDX-License-Identifier: MIT */
#pragma once

/* Strict UTF-8, for text that another process wrote. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the valid character at `at`, 1 to 4 bytes; 0 if there is none (an overlong form, a
 * surrogate, beyond U+10FFFF, or cut off by `left`). */
size_t utf8_character(const void *at, size_t left);

/* Like utf8_character(), but also returns 0 for characters that must not be printed: control
 * characters (below U+0020, U+007F to U+009F), which a terminal may obey, and characters that are
 * invisible or change the direction of others, which make a text look like another one. */
size_t utf8_printable(const void *at, size_t left);

/* The code point of a valid character. */
uint32_t utf8_code(const void *at, size_t length);

#define UTF8_ESCAPE_SIZE 11

/* Writes the escape of a valid character of `length` bytes, NUL-terminated: \x9b, \u202e or
 * \U000e0001. Returns the length of the escape. */
size_t utf8_escape_character(char to[UTF8_ESCAPE_SIZE], const void *at, size_t length);

#define UTF8_ESCAPED_MAX(n) ((n)*4 + 1)

/* Writes `data` into `buffer`, NUL-terminated. Bytes other than printable UTF-8 and tab become \xNN
 * or the escape of utf8_escape_character(). Cuts the text if needed; UTF8_ESCAPED_MAX(n) bytes
 * always suffice. Returns the length. */
size_t utf8_escape(char *buffer, size_t buffer_size, const char *data, size_t size);

/* Returns whether the text is valid UTF-8 without NUL; true for an empty one. */
bool utf8_is_text(const void *data, size_t size);

/* Returns how many of the first `size` bytes of a longer text are whole characters. Returns `size`
 * if they are not text. */
size_t utf8_whole(const void *data, size_t size);

/* Writes a code point below U+110000. Returns its length, 1 to 4 bytes. */
size_t utf8_put(char to[4], uint32_t code);
