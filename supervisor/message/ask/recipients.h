/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * To whom one ask was handed, when exchanges handed it to several: these may reply, and nobody
 * else who guesses its handle. A set of references; all operations cost the same whatever its size.
 */

#include <stdbool.h>
#include <stdint.h>

struct recipients {
    uint32_t n, n_places; /* a power of two, and at least twice as many */
    uint64_t places[];    /* 0 = free */
};

/* Makes room for `n` more; NULL is an empty one. 0 or -ENOMEM, and then nothing has changed. */
int recipients_reserve(struct recipients **recipients, uint32_t n);

/* As above; not 0. Twice is once. */
int recipients_add(struct recipients **recipients, uint64_t reference);

/* NULL has nobody, and nobody is 0. */
bool recipients_has(const struct recipients *recipients, uint64_t reference);
