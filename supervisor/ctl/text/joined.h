/* SPDX-License-Identifier: MIT */
#pragma once

/* Text made of parts with ", " between them. */

#include <stddef.h>

struct joined {
    const char *separator; /* borrowed; before the next part, then ", " again */
    size_t size;
    char text[4096]; /* may contain marks; a part that does not fit is left out */
};

/* clang-format off */
#define JOINED_NULL {.separator = ", "}
/* clang-format on */

void joined_add(struct joined *joined, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
