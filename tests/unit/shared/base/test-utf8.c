/* SPDX-License-Identifier: MIT */
#include "shared/base/utf8.h"
#include "tests/unit/suite.h"

static const char *escaped(const char *text)
{
    static char buffer[UTF8_ESCAPED_MAX(64)];

    (void)utf8_escape(buffer, sizeof(buffer), text, strlen(text));
    return buffer;
}

TEST(letters_of_all_scripts_stay)
{
    static const char text[] = "a\tß € 日本 שלום 𝄞";

    ck_assert_str_eq(escaped(text), text);
}

TEST(what_changes_directions_or_cannot_be_seen_is_escaped)
{
    ck_assert_str_eq(escaped("a\u202eb"), "a\\u202eb");
    ck_assert_str_eq(escaped("\u2066\u2069\u200b\u200f\u2028\ufeff"),
                     "\\u2066\\u2069\\u200b\\u200f\\u2028\\ufeff");
    ck_assert_str_eq(escaped("\U000e0041"), "\\U000e0041");
    ck_assert_uint_eq(utf8_printable("\u2067", 3), 0);
}

TEST(control_characters_and_what_is_no_text_are_escaped_by_bytes)
{
    ck_assert_str_eq(escaped("\x1b[2J\xc2\x9b\xff\xe2\x80"), "\\x1b[2J\\xc2\\x9b\\xff\\xe2\\x80");
}
