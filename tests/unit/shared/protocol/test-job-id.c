/* SPDX-License-Identifier: MIT */
#include "shared/protocol/job-id.h"

#include "shared/protocol/traceparent.h"
#include "tests/unit/suite.h"
#include <stdlib.h>
#include <string.h>

static const struct protocol_id made_id = {.high = UINT64_C(0x0123456789abcdef),
                                           .low = UINT64_C(0xfedcba9876543210)};
static const struct protocol_id chosen_id = {.name = "nightly:report@7"};

TEST(ids_have_a_text_form)
{
    char text[PROTOCOL_ID_TEXT];

    ck_assert_str_eq(protocol_id_format(&made_id, text), "0123456789abcdeffedcba9876543210");
    ck_assert_str_eq(protocol_id_format(&chosen_id, text), "nightly:report@7");
}

TEST(text_forms_are_read_back)
{
    static const char *const names[] = {"a",
                                        "A9._:@-",
                                        "0123456789abcdeffedcba987654321",   /* 31 digits */
                                        "0123456789abcdeffedcba98765432100", /* 33 */
                                        "0123456789ABCDEFFEDCBA9876543210",  /* upper case */
                                        "0123456789abcdeffedcba987654321g"};
    struct protocol_id id;

    ck_assert_int_eq(protocol_id_parse(&id, "0123456789abcdeffedcba9876543210"), 0);
    ck_assert_uint_eq(id.high, made_id.high);
    ck_assert_uint_eq(id.low, made_id.low);
    ck_assert_str_eq(id.name, "");
    for (size_t i = 0; i < ELEMENTS(names); i++) {
        ck_assert_int_eq(protocol_id_parse(&id, names[i]), 0);
        ck_assert_str_eq(id.name, names[i]);
        ck_assert_uint_eq(id.high, 0);
        ck_assert_uint_eq(id.low, 0);
    }
}

TEST(X4_a_traceparent_is_of_version_00_and_not_all_zero)
{
#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN  "00f067aa0ba902b7"
    static const char *const invalid[] = {
        "",
        "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-011",
        "ff-" TRACE "-" SPAN "-01",
        "01-" TRACE "-" SPAN "-01",
        "00_" TRACE "-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01",
        "00-" TRACE "-" SPAN "_01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01",
        "00-" TRACE "-00f067aa0ba902bg-01",
        "00-" TRACE "-" SPAN "-0x",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
    };
    static const char *const flags[] = {"00", "01", "02", "03", "0a", "0f", "ff"};
    char text[TRACEPARENT_SIZE + 1] = "00-" TRACE "-" SPAN "-01";

    for (size_t i = 0; i < sizeof(invalid) / sizeof(*invalid); i++)
        ck_assert_msg(!traceparent_valid(invalid[i], strlen(invalid[i])), "%s", invalid[i]);
    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
        memcpy(text + TRACEPARENT_FLAGS, flags[i], 2);
        ck_assert_msg(traceparent_valid(text, TRACEPARENT_SIZE), "%s", text);
        ck_assert_int_eq(traceparent_is_sampled(text), strtoul(flags[i], NULL, 16) & 1);
    }
}

TEST(bad_text_forms_are_refused)
{
    static const char *const bad[] = {"", "-x", ".x", "a b", "a\n", "a/b", "ä", "a%", "*"};
    char text[PROTOCOL_NAME_MAX + 2] = "";
    struct protocol_id id;

    for (size_t i = 0; i < ELEMENTS(bad); i++)
        ck_assert_int_eq(protocol_id_parse(&id, bad[i]), -EINVAL);
    memset(text, 'x', PROTOCOL_NAME_MAX);
    ck_assert_int_eq(protocol_id_parse(&id, text), 0);
    text[PROTOCOL_NAME_MAX] = 'x';
    ck_assert_int_eq(protocol_id_parse(&id, text), -EINVAL);
}

TEST(Q14_tags_are_up_to_eight_names_with_single_blanks)
{
    static const char *const valid[] = {"a", "a b", "nightly mail", "1 2 3 4 5 6 7 8", "x:y @a"};
    static const char *const invalid[] = {"",   " ",  "a ", " a", "a  b", "1 2 3 4 5 6 7 8 9",
                                          "-a", "a/b"};

    for (size_t i = 0; i < sizeof(valid) / sizeof(*valid); i++)
        ck_assert_msg(protocol_tags_valid(valid[i], strlen(valid[i])), "%s", valid[i]);
    for (size_t i = 0; i < sizeof(invalid) / sizeof(*invalid); i++)
        ck_assert_msg(!protocol_tags_valid(invalid[i], strlen(invalid[i])), "%s", invalid[i]);
}
