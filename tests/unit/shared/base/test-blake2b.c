/* SPDX-License-Identifier: MIT */
#include "shared/base/blake2b.h"
#include "tests/unit/suite.h"

static uint8_t bytes[1000];

static void setup(void)
{
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i % 251);
}

/* Adds the bytes in parts of this size. */
static void expect(size_t size, size_t part, uint64_t first, uint64_t second)
{
    struct blake2b hash;
    uint64_t digest[2];

    blake2b_init(&hash);
    for (size_t at = 0; at < size; at += part)
        blake2b_add(&hash, bytes + at, size - at < part ? size - at : part);
    blake2b_end(&hash, digest);
    ck_assert_uint_eq(digest[0], first);
    ck_assert_uint_eq(digest[1], second);
}

/* The digests are those of hashlib.blake2b(…, digest_size=16). */
TEST(digests_are_those_of_other_implementations)
{
    expect(0, 1000, UINT64_C(0x40bdefd94169e6ca), UINT64_C(0x7076a68e75884d4e));
    expect(3, 1000, UINT64_C(0x1b0c36970d0b5ca7), UINT64_C(0x5a39a0b66e4983a7));
    expect(127, 1000, UINT64_C(0x8807487d6c29b128), UINT64_C(0x0acc4dc04eeee63d));
    expect(128, 1000, UINT64_C(0xe389f54e008747a7), UINT64_C(0x4a29d00039184911));
    expect(129, 1000, UINT64_C(0xe44e6d1f37b0f1aa), UINT64_C(0xef499cdd5dfbe49e));
    expect(256, 1000, UINT64_C(0x3863d2dc04c54211), UINT64_C(0xd040454241cfcbb7));
    expect(1000, 1000, UINT64_C(0x5dd99cd8df20a1bc), UINT64_C(0x901cb0a573848982));
}

TEST(bytes_may_come_in_parts_of_any_size)
{
    const size_t parts[] = {1, 7, 127, 128, 129, 999};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        expect(1000, parts[i], UINT64_C(0x5dd99cd8df20a1bc), UINT64_C(0x901cb0a573848982));
}

const struct suite suite = {.setup = setup};
