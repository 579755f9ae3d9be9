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
 * Reads "12", "12.5", "-0.05": an optional minus, digits, and behind a point one or two more. 0,
 * -EINVAL for anything else, -ERANGE for what does not fit.
 */
int decimal_parse(decimal_t *ret, const char *text);

/* Always with two digits behind the point. Returns `text`, of DECIMAL_TEXT bytes. */
char *decimal_format(decimal_t amount, char *text);

/* 0, or -ERANGE: the sum does not fit, and `*ret` is as it was. */
int decimal_add(decimal_t a, decimal_t b, decimal_t *ret);
