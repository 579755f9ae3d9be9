/* SPDX-License-Identifier: MIT */
#pragma once

/* Hashes for tables in memory. Not for anything that is stored or sent. */

#include <stddef.h>
#include <stdint.h>

/* A random number, the same for the whole process, so that peers cannot choose values that
 * collide. */
uint64_t hash_secret(void);

/* Mixes all bits into all others; a bijection without a secret. */
static inline uint64_t hash_mix(uint64_t x)
{
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

/* The inverse of hash_mix(). */
static inline uint64_t hash_unmix(uint64_t x)
{
    x = (x ^ x >> 32) * UINT64_C(0xcfee444d8b59a89b);
    x = (x ^ x >> 32) * UINT64_C(0xcfee444d8b59a89b);
    return x ^ x >> 32;
}

/* A hash of the bytes that depends on hash_secret(). */
uint64_t hash_bytes(const void *bytes, size_t size);

/* A digest of values that is the same in each process and version. It distinguishes values that
 * are not chosen to collide. */
#define DIGEST_NONE UINT64_C(0xcbf29ce484222325)

/* FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/. Continues from `digest`. */
static inline uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    return digest;
}

/* A digest of bytes that is the same in each process and version. Other bytes with a given digest
 * can only be found by trying. SipHash-2-4: https://www.aumasson.jp/siphash/. */
uint64_t digest_strong(const void *bytes, size_t size);
