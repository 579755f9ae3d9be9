/* SPDX-License-Identifier: MIT */
#pragma once

/* So many a second and no more: for log lines that others can cause at will. Who floods it makes
 * itself unheard, not its neighbours; how many were left out is told with the next one. */

#include "shared/base/clock.h"
#include <stdbool.h>

struct rate {
    usec_t since;
    unsigned n;
    unsigned left_out; /* since the last one that was not */
};

/* clang-format off */
#define RATE_NULL {0}
/* clang-format on */

/* Whether this one is within `max` a second. Then `*ret_left_out` (may be NULL) were not. */
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
