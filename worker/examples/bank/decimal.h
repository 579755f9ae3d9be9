/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Exact amounts of money: whole numbers of the smallest unit, a hundredth. No floating point, which
 * cannot hold 0.10.
 */

#include <stdint.h>

typedef int64_t decimal_t; /* hundredths */

#define DECIMAL_TEXT 24 /* bytes that the longest one takes as text, with its NUL */

/*
 * Reads "12", "12.5", "-0.05": an optional minus, digits, and after a point one or two more. 0,
 * -EINVAL for anything else, -ERANGE if the amount does not fit.
 */
int decimal_parse(decimal_t *ret, const char *text);

/* Writes the amount with two digits after the point. Returns `text`, of DECIMAL_TEXT bytes. */
char *decimal_format(decimal_t amount, char *text);

/* 0, or -ERANGE: the sum does not fit, and `*ret` is unchanged. */
int decimal_add(decimal_t a, decimal_t b, decimal_t *ret);
