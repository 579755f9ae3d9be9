/* SPDX-License-Identifier: MIT */
#include "shared/protocol/wire.h"
#include "tests/unit/suite.h"

#define FIXED (1 + 2 + 4 + 4 + 8)

static uint8_t body[64];

TEST(fields_come_back_as_they_were_put)
{
    struct wire_writer writer = wire_writer(body, sizeof(body), FIXED);

    wire_put_u8(&writer, 0xab);
    wire_put_u16(&writer, 0xabcd);
    wire_put_bytes(&writer, "hello", 5);
    wire_put_u32(&writer, 0xabcdef01);
    wire_put_i32(&writer, INT32_MIN);
    wire_put_u64(&writer, UINT64_C(0xabcdef0123456789));
    ck_assert_int_eq(wire_written(&writer), FIXED + 5);

    struct wire_reader reader = wire_reader(body, FIXED + 5, FIXED);
    ck_assert_uint_eq(wire_get_u8(&reader), 0xab);
    ck_assert_uint_eq(wire_get_u16(&reader), 0xabcd);
    const void *bytes = wire_get_bytes(&reader, 5);
    ck_assert_mem_eq(bytes, "hello", 5);
    ck_assert_ptr_eq(bytes, body + 3);
    ck_assert_uint_eq(wire_get_u32(&reader), 0xabcdef01);
    ck_assert_int_eq(wire_get_i32(&reader), INT32_MIN);
    ck_assert_uint_eq(wire_get_u64(&reader), UINT64_C(0xabcdef0123456789));
    ck_assert_int_eq(wire_end(&reader), 0);
}

TEST(no_bytes_are_a_field_too)
{
    struct wire_writer writer = wire_writer(body, 0, 0);
    struct wire_reader reader = wire_reader(body, 0, 0);

    wire_put_bytes(&writer, NULL, 0);
    ck_assert_int_eq(wire_written(&writer), 0);
    ck_assert_ptr_eq(wire_get_bytes(&reader, 0), body);
    ck_assert_int_eq(wire_end(&reader), 0);
}

TEST(bytes_leave_the_room_of_the_fields_behind_them)
{
    struct wire_writer writer = wire_writer(body, 8, 4);

    memset(body, 0x55, sizeof(body));
    wire_put_bytes(&writer, "hello", 5);
    wire_put_u32(&writer, 1);
    ck_assert_int_eq(wire_written(&writer), -EMSGSIZE);
    ck_assert_uint_eq(body[8], 0x55);
}

TEST(a_writer_that_ran_over_stays_failed)
{
    struct wire_writer writer = wire_writer(body, 4, 0);

    memset(body, 0x55, sizeof(body));
    wire_put_bytes(&writer, "hello", 5);
    wire_put_bytes(&writer, "h", 1);
    ck_assert_int_eq(wire_written(&writer), -EMSGSIZE);
    ck_assert_uint_eq(body[0], 0x55);
}

TEST(an_exact_fit_is_no_failure)
{
    struct wire_writer writer = wire_writer(body, 9, 4);

    wire_put_u32(&writer, 5);
    wire_put_bytes(&writer, "hello", 5);
    ck_assert_int_eq(wire_written(&writer), 9);
}

TEST(bytes_beyond_the_record_yield_nothing)
{
    static const size_t sizes[] = {5, INT32_MAX, UINT32_MAX, SIZE_MAX};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct wire_reader reader = wire_reader(body, 8, 4);

        ck_assert_ptr_null(wire_get_bytes(&reader, sizes[i]));
        (void)wire_get_u32(&reader);
        ck_assert_ptr_null(wire_get_bytes(&reader, 1));
        ck_assert_int_eq(wire_end(&reader), -EBADMSG);
    }
}

TEST(a_surplus_byte_fails_the_end)
{
    struct wire_reader reader = wire_reader(body, 5, 4);

    (void)wire_get_u32(&reader);
    ck_assert_int_eq(wire_end(&reader), -EBADMSG);
}
