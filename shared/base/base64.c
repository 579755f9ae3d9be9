/* SPDX-License-Identifier: MIT */
#include "shared/base/base64.h"

#include <errno.h>
#include <stdint.h>

static const char DIGITS[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_size(size_t size)
{
    return (size + 2) / 3 * 4;
}

void base64_encode(char *to, const void *from, size_t size)
{
    const uint8_t *s = from;

    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = (uint32_t)s[i] << 16;

        if (i + 1 < size)
            bits |= (uint32_t)s[i + 1] << 8;
        if (i + 2 < size)
            bits |= s[i + 2];
        *to++ = DIGITS[bits >> 18];
        *to++ = DIGITS[bits >> 12 & 63];
        *to++ = i + 1 < size ? DIGITS[bits >> 6 & 63] : '=';
        *to++ = i + 2 < size ? DIGITS[bits & 63] : '=';
    }
}

/* -1 for a character that is not a digit. */
static int digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* One group of `n_digits` (2 … 4) digits into n_digits - 1 bytes. */
static int decode_group(uint8_t *to, const char *text, size_t n_digits)
{
    uint32_t bits = 0;

    for (size_t i = 0; i < 4; i++) {
        int value = i < n_digits ? digit_value(text[i]) : 0;

        if (value < 0)
            return -EINVAL;
        bits = bits << 6 | (uint32_t)value;
    }
    for (size_t i = 0; i < n_digits - 1; i++)
        to[i] = (uint8_t)(bits >> (16 - 8 * i));
    /* Unused bits must be zero: each content has one encoding. */
    return (bits & ((1u << (8 * (4 - n_digits))) - 1)) == 0 ? 0 : -EINVAL;
}

int base64_decode(void *to, size_t *ret_size, const char *text, size_t size)
{
    uint8_t *at = to;

    if (size % 4 != 0)
        return -EINVAL;
    for (size_t i = 0; i < size; i += 4) {
        size_t n_digits = 4;

        if (i + 4 == size && text[i + 3] == '=')
            n_digits = text[i + 2] == '=' ? 2 : 3;
        if (decode_group(at, text + i, n_digits) < 0)
            return -EINVAL;
        at += n_digits - 1;
    }
    *ret_size = (size_t)(at - (uint8_t *)to);
    return 0;
}
