/* SPDX-License-Identifier: MIT */
#include "shared/protocol/traceparent.h"

#include <string.h>

/* `zero`: they may all be 0. */
static bool are_digits(const char *text, size_t n, bool zero)
{
    for (size_t i = 0; i < n; i++) {
        if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
            return false;
        zero = zero || text[i] != '0';
    }
    return zero;
}

bool traceparent_valid(const char *text, size_t size)
{
    if (size != TRACEPARENT_SIZE || memcmp(text, "00-", TRACEPARENT_TRACE) != 0)
        return false;
    return text[TRACEPARENT_SPAN - 1] == '-' && text[TRACEPARENT_FLAGS - 1] == '-' &&
           are_digits(text + TRACEPARENT_TRACE, TRACEPARENT_TRACE_DIGITS, false) &&
           are_digits(text + TRACEPARENT_SPAN, TRACEPARENT_SPAN_DIGITS, false) &&
           are_digits(text + TRACEPARENT_FLAGS, 2, true);
}

bool traceparent_is_sampled(const char *text)
{
    const char last = text[TRACEPARENT_SIZE - 1];

    return (last >= 'a' ? last - 'a' + 10 : last - '0') & 1;
}
