/* SPDX-License-Identifier: MIT */
#include "shared/base/blake2b.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#define DIGEST_SIZE 16
#define N_ROUNDS    12

static const uint64_t INITIAL[8] = {
    UINT64_C(0x6a09e667f3bcc908), UINT64_C(0xbb67ae8584caa73b), UINT64_C(0x3c6ef372fe94f82b),
    UINT64_C(0xa54ff53a5f1d36f1), UINT64_C(0x510e527fade682d1), UINT64_C(0x9b05688c2b3e6c1f),
    UINT64_C(0x1f83d9abfb41bd6b), UINT64_C(0x5be0cd19137e2179),
};

/* Which words of the block each round takes; the last two rounds are like the first two. */
static const uint8_t ORDER[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static inline uint64_t rotate(uint64_t x, unsigned bits)
{
    return x >> bits | x << (64 - bits);
}

static inline void mix(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, uint64_t x, uint64_t y)
{
    *a += *b + x;
    *d = rotate(*d ^ *a, 32);
    *c += *d;
    *b = rotate(*b ^ *c, 24);
    *a += *b + y;
    *d = rotate(*d ^ *a, 16);
    *c += *d;
    *b = rotate(*b ^ *c, 63);
}

/* Mixes the columns, then the diagonals, of the four rows of `v`. */
static inline void mix_all(uint64_t v[16], const uint64_t words[16], const uint8_t order[16])
{
    mix(&v[0], &v[4], &v[8], &v[12], words[order[0]], words[order[1]]);
    mix(&v[1], &v[5], &v[9], &v[13], words[order[2]], words[order[3]]);
    mix(&v[2], &v[6], &v[10], &v[14], words[order[4]], words[order[5]]);
    mix(&v[3], &v[7], &v[11], &v[15], words[order[6]], words[order[7]]);
    mix(&v[0], &v[5], &v[10], &v[15], words[order[8]], words[order[9]]);
    mix(&v[1], &v[6], &v[11], &v[12], words[order[10]], words[order[11]]);
    mix(&v[2], &v[7], &v[8], &v[13], words[order[12]], words[order[13]]);
    mix(&v[3], &v[4], &v[9], &v[14], words[order[14]], words[order[15]]);
}

static void compress(struct blake2b *hash, const uint8_t block[BLAKE2B_BLOCK], bool last)
{
    uint64_t v[16], words[16];

    memcpy(words, block, sizeof(words));
    for (size_t i = 0; i < 16; i++)
        words[i] = le64toh(words[i]);
    memcpy(v, hash->state, sizeof(hash->state));
    memcpy(v + 8, INITIAL, sizeof(INITIAL));
    v[12] ^= hash->n_bytes;
    v[14] ^= last ? UINT64_MAX : 0;
    for (size_t round = 0; round < N_ROUNDS; round++)
        mix_all(v, words, ORDER[round % 10]);
    for (size_t i = 0; i < 8; i++)
        hash->state[i] ^= v[i] ^ v[i + 8];
}

void blake2b_init(struct blake2b *hash)
{
    *hash = (struct blake2b){0};
    memcpy(hash->state, INITIAL, sizeof(INITIAL));
    hash->state[0] ^= 0x01010000 ^ DIGEST_SIZE;
}

/* The last block, even if it is full, waits for blake2b_end(). */
void blake2b_add(struct blake2b *hash, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;

    while (size > 0) {
        const size_t room = BLAKE2B_BLOCK - hash->n_pending, n = size < room ? size : room;

        memcpy(hash->pending + hash->n_pending, from, n);
        hash->n_pending += n;
        from += n;
        size -= n;
        if (size > 0) {
            hash->n_bytes += BLAKE2B_BLOCK;
            compress(hash, hash->pending, false);
            hash->n_pending = 0;
        }
    }
}

void blake2b_end(struct blake2b *hash, uint64_t ret[2])
{
    hash->n_bytes += hash->n_pending;
    memset(hash->pending + hash->n_pending, 0, BLAKE2B_BLOCK - hash->n_pending);
    compress(hash, hash->pending, true);
    ret[0] = hash->state[0];
    ret[1] = hash->state[1];
}
