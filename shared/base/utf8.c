/* SPDX-License-Identifier: MIT */
#include "shared/base/utf8.h"

#include <stdio.h>
#include <string.h>

size_t utf8_character(const void *at, size_t left)
{
    const uint8_t *s = at;
    /* The second byte's range excludes overlong forms, surrogates and values beyond U+10FFFF. */
    uint8_t low = 0x80, high = 0xbf;
    size_t length;

    if (left == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (s[0] == 0xe0)
        low = 0xa0;
    else if (s[0] == 0xed)
        high = 0x9f;
    else if (s[0] == 0xf0)
        low = 0x90;
    else if (s[0] == 0xf4)
        high = 0x8f;
    if (left < length || s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

uint32_t utf8_code(const void *at, size_t length)
{
    const uint8_t *s = at;
    uint32_t code = length == 1 ? s[0] : s[0] & (0x7fu >> length);

    for (size_t i = 1; i < length; i++)
        code = code << 6 | (s[i] & 0x3f);
    return code;
}

/* Characters of Unicode's category Cf, line separators, and blank letters. */
static const struct {
    uint32_t first, last;
} INVISIBLE[] = {
    {0x00ad, 0x00ad}, {0x034f, 0x034f},   {0x061c, 0x061c},   {0x115f, 0x1160},
    {0x17b4, 0x17b5}, {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f}, {0x3164, 0x3164},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff9, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

static bool is_invisible(uint32_t code)
{
    for (size_t i = 0; i < sizeof(INVISIBLE) / sizeof(*INVISIBLE); i++)
        if (code >= INVISIBLE[i].first && code <= INVISIBLE[i].last)
            return true;
    return false;
}

size_t utf8_printable(const void *at, size_t left)
{
    const size_t length = utf8_character(at, left);
    const uint32_t code = length > 0 ? utf8_code(at, length) : 0;

    return is_control(code) || is_invisible(code) ? 0 : length;
}

size_t utf8_escape_character(char to[UTF8_ESCAPE_SIZE], const void *at, size_t length)
{
    const uint32_t code = utf8_code(at, length);
    int n;

    if (code < 0x100)
        n = snprintf(to, UTF8_ESCAPE_SIZE, "\\x%02x", code);
    else if (code < 0x10000)
        n = snprintf(to, UTF8_ESCAPE_SIZE, "\\u%04x", code);
    else
        n = snprintf(to, UTF8_ESCAPE_SIZE, "\\U%08x", code);
    return (size_t)n;
}

/* Writes the escape of the next character or byte. Returns how many bytes it covers. */
static size_t escape_next(char to[UTF8_ESCAPE_SIZE], const unsigned char *at, size_t left)
{
    const size_t length = utf8_character(at, left);

    if (length > 1 && utf8_code(at, length) >= 0x100) {
        (void)utf8_escape_character(to, at, length);
        return length;
    }
    (void)snprintf(to, UTF8_ESCAPE_SIZE, "\\x%02x", *at);
    return 1;
}

size_t utf8_escape(char *buffer, size_t buffer_size, const char *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    size_t out = 0;

    for (size_t i = 0; i < size;) {
        size_t n = bytes[i] == '\t' ? 1 : utf8_printable(bytes + i, size - i);
        char escaped[UTF8_ESCAPE_SIZE];
        const void *piece = n > 0 ? (const void *)(data + i) : escaped;
        size_t piece_size = n;

        if (n == 0) {
            n = escape_next(escaped, bytes + i, size - i);
            piece_size = strlen(escaped);
        }
        if (out + piece_size + 1 > buffer_size)
            break;
        memcpy(buffer + out, piece, piece_size);
        out += piece_size;
        i += n;
    }
    if (buffer_size > 0)
        buffer[out] = '\0';
    return out;
}

bool utf8_is_text(const void *data, size_t size)
{
    const uint8_t *s = data;

    for (size_t i = 0; i < size;) {
        size_t length = s[i] - 1u < 0x7f ? 1 : utf8_character(s + i, size - i);

        if (length == 0 || s[i] == 0)
            return false;
        i += length;
    }
    return true;
}

size_t utf8_whole(const void *data, size_t size)
{
    for (size_t cut = 0; cut < 4 && cut < size; cut++)
        if (utf8_is_text(data, size - cut))
            return size - cut;
    return size;
}

size_t utf8_put(char to[4], uint32_t code)
{
    const size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = length; i-- > 1; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(first[length] | code);
    return length;
}
