/* SPDX-License-Identifier: MIT */
#pragma once

/* Limits how often something happens per second, such as log lines that other processes can
 * cause. */

#include "shared/base/clock.h"
#include <stdbool.h>

struct rate {
    usec_t since;
    unsigned n;
    unsigned left_out; /* since the last one that was admitted */
};

/* clang-format off */
#define RATE_NULL {0}
/* clang-format on */

/* Returns whether this event is within `max` per second. If so, `*ret_left_out` (may be NULL) is
 * the number of events left out before it. */
static inline bool rate_take(struct rate *rate, usec_t now, unsigned max, unsigned *ret_left_out)
{
    if (now - rate->since >= USEC_PER_SEC) {
        rate->since = now;
        rate->n = 0;
    }
    if (rate->n >= max) {
        rate->left_out++;
        return false;
    }
    rate->n++;
    if (ret_left_out)
        *ret_left_out = rate->left_out;
    rate->left_out = 0;
    return true;
}
