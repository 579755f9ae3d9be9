/* SPDX-License-Identifier: MIT */
#pragma once

/* A set of system calls of this machine's architecture. */

#include <stdbool.h>
#include <stdint.h>

/* Above all numbers of system calls, on the architectures where they begin at 0. */
#define SYSCALLS_MAX 640

struct call_set {
    uint64_t bits[SYSCALLS_MAX / 64];
};

static inline bool call_set_has(const struct call_set *set, int call)
{
    return call >= 0 && call < SYSCALLS_MAX && set->bits[call / 64] >> call % 64 & 1;
}

static inline void call_set_add_all(struct call_set *set, const struct call_set *other)
{
    for (int i = 0; i < SYSCALLS_MAX / 64; i++)
        set->bits[i] |= other->bits[i];
}

/* `call` is in range. */
static inline void call_set_add(struct call_set *set, int call)
{
    set->bits[call / 64] |= UINT64_C(1) << call % 64;
}
