/* SPDX-License-Identifier: MIT */
#pragma once

/* A digest of values that is the same in each process and version. It tells values apart that
 * nobody chooses so that they collide. */

#include <stddef.h>
#include <stdint.h>

#define DIGEST_NONE UINT64_C(0xcbf29ce484222325)

/* FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/. Goes on from `digest`. */
static inline uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    return digest;
}
