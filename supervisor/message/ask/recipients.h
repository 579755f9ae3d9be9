/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The actors that got a copy of one ask through exchanges: only they may reply. A set of
 * references; the cost does not depend on its size.
 */

#include <stdbool.h>
#include <stdint.h>

struct recipients {
    uint32_t n, n_places; /* n_places: a power of two, at least 2 * n */
    uint64_t places[];    /* 0 = free */
};

/* Makes room for `n` more; NULL is an empty set. 0, or -ENOMEM with nothing changed. */
int recipients_reserve(struct recipients **recipients, uint32_t n);
/* Adds a reference, which is not 0; idempotent. Returns 0 or -ENOMEM. */
int recipients_add(struct recipients **recipients, uint64_t reference);
bool recipients_has(const struct recipients *recipients, uint64_t reference);
