/* SPDX-License-Identifier: MIT */
#include "shared/base/utf8.h"

#include <string.h>

size_t utf8_character(const void *at, size_t left)
{
    const uint8_t *s = at;
    /* The second byte's range excludes overlong forms, surrogates and what is beyond U+10FFFF. */
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

size_t utf8_printable(const void *at, size_t left)
{
    const uint8_t *s = at;
    size_t length = utf8_character(at, left);
    bool control = (length == 1 && (s[0] < 0x20 || s[0] == 0x7f)) ||
                   (length == 2 && s[0] == 0xc2 && s[1] < 0xa0);

    return control ? 0 : length;
}

size_t utf8_escape(char *buffer, size_t buffer_size, const char *data, size_t size)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *bytes = (const unsigned char *)data;
    size_t out = 0;

    for (size_t i = 0; i < size;) {
        const size_t n = bytes[i] == '\t' ? 1 : utf8_printable(bytes + i, size - i);
        const char escaped[4] = {'\\', 'x', hex[bytes[i] >> 4], hex[bytes[i] & 15]};
        const size_t piece_size = n > 0 ? n : sizeof(escaped);

        if (out + piece_size + 1 > buffer_size)
            break;
        memcpy(buffer + out, n > 0 ? data + i : escaped, piece_size);
        out += piece_size;
        i += n > 0 ? n : 1;
    }
    if (buffer_size > 0)
        buffer[out] = '\0';
    return out;
}

bool utf8_is_text(const void *data, size_t size)
{
    const uint8_t *s = data;

    for (size_t i = 0; i < size;) {
        size_t length = utf8_character(s + i, size - i);

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
