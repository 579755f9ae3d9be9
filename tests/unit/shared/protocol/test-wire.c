/* SPDX-License-Identifier: MIT */
#include "shared/protocol/wire.h"
#include <check.h>
#include <stdlib.h>

static uint8_t body[64];

START_TEST(fields_come_back_as_they_were_put)
{
    struct wire_writer writer = wire_writer(body, sizeof(body));
    struct wire_reader reader;
    const void *bytes;

    wire_put_u8(&writer, 0xab);
    wire_put_u16(&writer, 0xabcd);
    wire_put_u32(&writer, 0xabcdef01);
    wire_put_i32(&writer, INT32_MIN);
    wire_put_u64(&writer, UINT64_C(0xabcdef0123456789));
    wire_put_bytes(&writer, "hello", 5);
    ck_assert_int_eq(wire_written(&writer), 1 + 2 + 4 + 4 + 8 + 4 + 5);

    reader = wire_reader(body, (uint32_t)wire_written(&writer));
    ck_assert_uint_eq(wire_get_u8(&reader), 0xab);
    ck_assert_uint_eq(wire_get_u16(&reader), 0xabcd);
    ck_assert_uint_eq(wire_get_u32(&reader), 0xabcdef01);
    ck_assert_int_eq(wire_get_i32(&reader), INT32_MIN);
    ck_assert_uint_eq(wire_get_u64(&reader), UINT64_C(0xabcdef0123456789));
    ck_assert_uint_eq(wire_get_bytes(&reader, &bytes), 5);
    ck_assert_mem_eq(bytes, "hello", 5);
    ck_assert_ptr_eq(bytes, body + 1 + 2 + 4 + 4 + 8 + 4);
    ck_assert_int_eq(wire_end(&reader), 0);
}
END_TEST

START_TEST(no_bytes_are_a_field_too)
{
    struct wire_writer writer = wire_writer(body, sizeof(body));
    struct wire_reader reader;
    const void *bytes;

    wire_put_bytes(&writer, NULL, 0);
    ck_assert_int_eq(wire_written(&writer), 4);
    reader = wire_reader(body, 4);
    ck_assert_uint_eq(wire_get_bytes(&reader, &bytes), 0);
    ck_assert_int_eq(wire_end(&reader), 0);
}
END_TEST

START_TEST(a_writer_that_ran_over_stays_failed)
{
    struct wire_writer writer = wire_writer(body, 5);

    memset(body, 0x55, sizeof(body));
    wire_put_u32(&writer, 1);
    wire_put_u32(&writer, 2);
    wire_put_u8(&writer, 3);
    ck_assert_int_eq(wire_written(&writer), -EMSGSIZE);
    ck_assert_uint_eq(body[4], 0x55);
    ck_assert_uint_eq(body[5], 0x55);
}
END_TEST

START_TEST(bytes_that_do_not_fit_fail_the_writer)
{
    struct wire_writer writer = wire_writer(body, 8);

    wire_put_bytes(&writer, "hello", 5);
    ck_assert_int_eq(wire_written(&writer), -EMSGSIZE);
}
END_TEST

START_TEST(an_exact_fit_is_no_failure)
{
    struct wire_writer writer = wire_writer(body, 9);

    wire_put_bytes(&writer, "hello", 5);
    ck_assert_int_eq(wire_written(&writer), 9);
}
END_TEST

START_TEST(a_missing_field_reads_as_zero_and_fails_the_end)
{
    struct wire_reader reader = wire_reader(body, 3);

    memset(body, 0xff, sizeof(body));
    ck_assert_uint_eq(wire_get_u32(&reader), 0);
    ck_assert_uint_eq(wire_get_u8(&reader), 0);
    ck_assert_int_eq(wire_end(&reader), -EBADMSG);
}
END_TEST

START_TEST(a_surplus_byte_fails_the_end)
{
    struct wire_reader reader = wire_reader(body, 5);

    (void)wire_get_u32(&reader);
    ck_assert_int_eq(wire_end(&reader), -EBADMSG);
}
END_TEST

START_TEST(a_length_beyond_the_record_yields_nothing)
{
    static const uint32_t lengths[] = {1, 5, INT32_MAX, UINT32_MAX};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct wire_reader reader = wire_reader(body, 4);
        const void *bytes = body;

        memcpy(body, &lengths[i], 4);
        ck_assert_uint_eq(wire_get_bytes(&reader, &bytes), 0);
        ck_assert_ptr_null(bytes);
        ck_assert_int_eq(wire_end(&reader), -EBADMSG);
    }
}
END_TEST

START_TEST(an_empty_record_has_nothing_to_say)
{
    struct wire_reader reader = wire_reader(body, 0);

    ck_assert_int_eq(wire_end(&reader), 0);
    (void)wire_get_u8(&reader);
    ck_assert_int_eq(wire_end(&reader), -EBADMSG);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire");
    TCase *tcase = tcase_create("wire");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, fields_come_back_as_they_were_put);
    tcase_add_test(tcase, no_bytes_are_a_field_too);
    tcase_add_test(tcase, a_writer_that_ran_over_stays_failed);
    tcase_add_test(tcase, bytes_that_do_not_fit_fail_the_writer);
    tcase_add_test(tcase, an_exact_fit_is_no_failure);
    tcase_add_test(tcase, a_missing_field_reads_as_zero_and_fails_the_end);
    tcase_add_test(tcase, a_surplus_byte_fails_the_end);
    tcase_add_test(tcase, a_length_beyond_the_record_yields_nothing);
    tcase_add_test(tcase, an_empty_record_has_nothing_to_say);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
