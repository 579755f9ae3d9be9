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
