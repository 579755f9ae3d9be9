/* SPDX-License-Identifier: MIT */
#pragma once

/* How something on the server differs from what troupe-nats would make, in words. */

#include <stddef.h>
#include <stdint.h>

struct difference {
    char text[512]; /* "" = it does not; a longer one is cut */
    size_t length;
};

/* clang-format off */
#define DIFFERENCE_NULL {.length = 0}
/* clang-format on */

/* Each adds "NAME HAVE, not WANTED" if the two differ. To have NULL or "" is none. */
void difference_text(struct difference *difference, const char *name, const char *have,
                     const char *wanted);
void difference_number(struct difference *difference, const char *name, int64_t have,
                       int64_t wanted);
/* Nanoseconds, which are written as seconds. */
void difference_time(struct difference *difference, const char *name, int64_t have, int64_t wanted);
