/* SPDX-License-Identifier: MIT */
#include "worker/examples/bank/decimal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#define UNITS  100
#define DIGITS 2

/* Downwards from 0: there is one negative number more than there are positive ones. */
static int append_digit(decimal_t *value, char digit)
{
    if (__builtin_mul_overflow(*value, 10, value) ||
        __builtin_sub_overflow(*value, digit - '0', value))
        return -ERANGE;
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int append_digits(decimal_t *value, const char **text, int max)
{
    int r = 0;

    for (int n = 0; r == 0 && n < max && is_digit(**text); n++)
        r = append_digit(value, *(*text)++);
    return r;
}

/* Parses the digits after the point, padded with zeros. */
static int parse_fraction(decimal_t *value, const char **text)
{
    const char *start;
    int r, n;

    if (**text == '.' && !is_digit(*++*text))
        return -EINVAL;
    start = *text;
    r = append_digits(value, text, DIGITS);
    for (n = (int)(*text - start); r == 0 && n < DIGITS; n++)
        r = append_digit(value, '0');
    return r;
}

int decimal_parse(decimal_t *ret, const char *text)
{
    bool negative = *text == '-';
    decimal_t value = 0;
    int r;

    text += negative;
    if (!is_digit(*text))
        return -EINVAL;
    r = append_digits(&value, &text, INT32_MAX);
    if (r == 0)
        r = parse_fraction(&value, &text);
    if (r == 0 && *text != '\0')
        r = -EINVAL;
    if (r == 0 && !negative && __builtin_sub_overflow(0, value, &value))
        r = -ERANGE;
    if (r == 0)
        *ret = value;
    return r;
}

char *decimal_format(decimal_t amount, char *text)
{
    /* The remainder has the sign of the amount; the smallest amount has no positive counterpart. */
    uint64_t magnitude = amount < 0 ? 0 - (uint64_t)amount : (uint64_t)amount;

    snprintf(text, DECIMAL_TEXT, "%s%" PRIu64 ".%02" PRIu64, amount < 0 ? "-" : "",
             magnitude / UNITS, magnitude % UNITS);
    return text;
}

int decimal_add(decimal_t a, decimal_t b, decimal_t *ret)
{
    decimal_t sum;

    if (__builtin_add_overflow(a, b, &sum))
        return -ERANGE;
    *ret = sum;
    return 0;
}
