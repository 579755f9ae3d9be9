/* SPDX-License-Identifier: MIT */
#pragma once

/* BLAKE2b (RFC 7693) without a key, with a digest of 128 bits: nobody can find other bytes with a
 * given digest. Takes about 2 ms for 1 MiB. */

#include <stddef.h>
#include <stdint.h>

#define BLAKE2B_BLOCK 128

struct blake2b {
    uint64_t state[8];
    uint64_t n_bytes; /* in the state */
    size_t n_pending;
    uint8_t pending[BLAKE2B_BLOCK];
};

void blake2b_init(struct blake2b *hash);
void blake2b_add(struct blake2b *hash, const void *bytes, size_t size);
/* Writes the digest: its first 8 bytes, and the others, read as little-endian numbers. */
void blake2b_end(struct blake2b *hash, uint64_t ret[2]);
