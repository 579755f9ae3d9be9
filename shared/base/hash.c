/* SPDX-License-Identifier: MIT */
#include "shared/base/hash.h"

#include "shared/base/clock.h"
#include <string.h>
#include <sys/random.h>

uint64_t hash_secret(void)
{
    static uint64_t secret;

    if (secret != 0)
        return secret;
    /* Too early in the boot for random bytes: a weak secret will do. */
    if (getrandom(&secret, sizeof(secret), GRND_NONBLOCK) != sizeof(secret))
        secret = clock_now();
    secret |= 1;
    return secret;
}

uint64_t hash_bytes(const void *bytes, size_t size)
{
    uint64_t hash = hash_mix(size ^ hash_secret()), part;

    for (size_t at = 0; at < size; at += sizeof(part)) {
        part = 0;
        memcpy(&part, (const uint8_t *)bytes + at,
               size - at < sizeof(part) ? size - at : sizeof(part));
        hash = hash_mix(hash ^ part);
    }
    return hash;
}

/* ---- SipHash ---- */

struct sip {
    uint64_t a, b, c, d;
};

static uint64_t rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static void sip_rounds(struct sip *sip, unsigned n)
{
    for (; n > 0; n--) {
        sip->a += sip->b;
        sip->c += sip->d;
        sip->b = rotate(sip->b, 13) ^ sip->a;
        sip->d = rotate(sip->d, 16) ^ sip->c;
        sip->a = rotate(sip->a, 32);
        sip->c += sip->b;
        sip->a += sip->d;
        sip->b = rotate(sip->b, 17) ^ sip->c;
        sip->d = rotate(sip->d, 21) ^ sip->a;
        sip->c = rotate(sip->c, 32);
    }
}

/* The key is 0. */
uint64_t digest_strong(const void *bytes, size_t size)
{
    struct sip sip = {UINT64_C(0x736f6d6570736575), UINT64_C(0x646f72616e646f6d),
                      UINT64_C(0x6c7967656e657261), UINT64_C(0x7465646279746573)};

    for (size_t at = 0; at <= size; at += 8) {
        uint64_t part = size - at < 8 ? (uint64_t)size << 56 : 0;

        for (size_t i = 0; i < 8 && at + i < size; i++)
            part |= (uint64_t)((const uint8_t *)bytes)[at + i] << 8 * i;
        sip.d ^= part;
        sip_rounds(&sip, 2);
        sip.a ^= part;
    }
    sip.c ^= 0xff;
    sip_rounds(&sip, 4);
    return sip.a ^ sip.b ^ sip.c ^ sip.d;
}
