/* SPDX-License-Identifier: MIT */
#include "supervisor/client/attachment.h"
#include "tests/unit/suite.h"

TEST(a_name_that_was_written_is_read_back)
{
    static const uint64_t numbers[] = {1, 9, 10, 4711, CLIENT_NUMBER_MAX};
    char name[CLIENT_NAME_SIZE];
    uint64_t number;

    for (size_t i = 0; i < ELEMENTS(numbers); i++) {
        client_name_write(name, numbers[i]);
        ck_assert(client_name_read(name, &number));
        ck_assert_uint_eq(number, numbers[i]);
    }
}

TEST(a_name_that_no_client_can_have_is_refused)
{
    static const char *const names[] = {
        "",
        "1",
        "@",
        "@0",
        "@-5",
        "@+5",
        "@ 5",
        "@05",
        "@5x",
        "@0x5",
        "@@5",
        "group",
        "@5 ",
        "@1.0",
        "@4611686018427387904",
        "@-18446744073709551615",
        "@18446744073709551615",
        "@99999999999999999999999999999",
    };
    uint64_t number;

    for (size_t i = 0; i < ELEMENTS(names); i++)
        ck_assert_msg(!client_name_read(names[i], &number), "%s", names[i]);
}
