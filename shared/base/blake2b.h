/* SPDX-License-Identifier: MIT */
#pragma once

/* BLAKE2b (RFC 7693) without a key, with a digest of 128 bits. Finding other bytes with a given
 * digest is not feasible. 1 MiB takes about 2 ms. */

#include <stddef.h>
#include <stdint.h>

#define BLAKE2B_BLOCK 128

struct blake2b {
    uint64_t state[8];
    uint64_t n_bytes; /* in the state */
    size_t n_pending;
    uint8_t pending[BLAKE2B_BLOCK];
};

/* Begins a digest. It owns no memory. */
void blake2b_init(struct blake2b *hash);
/* Adds `size` bytes, which are not kept. */
void blake2b_add(struct blake2b *hash, const void *bytes, size_t size);
/* Writes the digest: its first 8 bytes, and the others, read as little-endian numbers. */
void blake2b_end(struct blake2b *hash, uint64_t ret[2]);
