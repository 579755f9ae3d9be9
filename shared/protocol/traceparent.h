/* SPDX-License-Identifier: MIT */
#pragma once

/* Version 00 of the header traceparent of W3C Trace Context: "00-", 32 hexadecimal digits of a
 * trace, "-", 16 of a span, "-", 2 of flags. https://www.w3.org/TR/trace-context/ */

#include <stdbool.h>
#include <stddef.h>

enum {
    TRACEPARENT_SIZE = 55, /* without a NUL byte */
    TRACEPARENT_TRACE = 3, /* where the digits begin */
    TRACEPARENT_SPAN = 36,
    TRACEPARENT_FLAGS = 53,
    TRACEPARENT_TRACE_DIGITS = 32,
    TRACEPARENT_SPAN_DIGITS = 16,
};

#define TRACEPARENT_ALLOWED                                                                        \
    "00-TRACE-SPAN-FLAGS, as of W3C Trace Context: 32, 16 and 2 digits of 0-9 a-f; trace and "     \
    "span are not all 0"

/* Whether `text`, without a NUL byte, is one that the specification allows. */
bool traceparent_valid(const char *text, size_t size);
/* Whether the sender of a valid one records the trace. */
bool traceparent_is_sampled(const char *text);
