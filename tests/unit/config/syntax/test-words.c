/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/strings.h"
#include "supervisor/config/syntax/words.h"
#include "tests/unit/suite.h"

/* The words with '|' behind each, or the reason after '!'. Static. */
static const char *split(const char *text, bool command)
{
    static char joined[1024];
    config_strv words = NULL;
    const char *reason = NULL;
    int r = words_split(text, command, &words, &reason);

    joined[0] = '\0';
    if (r == WORDS_E_INVALID) {
        snprintf(joined, sizeof(joined), "!%s", reason);
        return joined;
    }
    ck_assert_int_eq(r, 0);
    for (size_t i = 0; words && words[i]; i++) {
        strcat(joined, words[i]);
        strcat(joined, "|");
    }
    strv_free(words);
    return joined;
}

TEST(white_space_separates_words)
{
    ck_assert_str_eq(split(" a  b\tc ", false), "a|b|c|");
    ck_assert_str_eq(split("", false), "");
    ck_assert_str_eq(split("  ", false), "");
}

TEST(quotes_keep_white_space_and_each_other)
{
    ck_assert_str_eq(split("'a b' \"c d\"", false), "a b|c d|");
    ck_assert_str_eq(split("'say \"hi\"' \"it's\"", false), "say \"hi\"|it's|");
    ck_assert_str_eq(split("'' \"\"", false), "||");
}

TEST(quotes_may_stand_within_a_word)
{
    ck_assert_str_eq(split("NAME=\"a b\" x'y z'w", false), "NAME=a b|xy zw|");
}

TEST(escapes_are_those_of_c)
{
    ck_assert_str_eq(split("a\\tb\\sc \\\\ \\x41\\101 \\\"q\\'", false), "a\tb c|\\|AA|\"q'|");
    ck_assert_str_eq(split("\\u00e4 \\U0001F600", false), "ä|😀|");
    ck_assert_str_eq(split("\\x7e\\xC3\\xa4", false), "~ä|");
    ck_assert_str_eq(split("'a\\nb' \"\\a\\b\\f\\r\\v\"", false), "a\nb|\a\b\f\r\v|");
}

TEST(broken_quoting_is_refused_with_the_reason)
{
    ck_assert_str_eq(split("'a b", false), "!a quote is not closed");
    ck_assert_str_eq(split("don't", false), "!a quote is not closed");
    ck_assert_str_eq(split("a\\", false), "!a backslash at the end escapes nothing");
    ck_assert_str_eq(split("\\q", false), "!an unknown escape; a backslash itself is written \\\\");
    ck_assert_str_eq(split("\\x4", false),
                     "!an escape \\xHH, \\OOO, \\uHHHH or \\UHHHHHHHH lacks digits");
    ck_assert_str_eq(split("\\081", false),
                     "!an escape \\xHH, \\OOO, \\uHHHH or \\UHHHHHHHH lacks digits");
    ck_assert_str_eq(split("\\x00", false), "!a NUL character cannot be passed on");
    ck_assert_str_eq(split("\\777", false), "!an escape names no character");
    ck_assert_str_eq(split("\\U00110000", false), "!an escape names no character");
    ck_assert_str_eq(split("\\ud800", false), "!an escape makes the word invalid UTF-8");
    ck_assert_str_eq(split("\\xff", false), "!an escape makes the word invalid UTF-8");
}

TEST(a_command_line_is_one_command)
{
    ck_assert_ptr_nonnull(strstr(split("a ; b", true), "second command"));
    ck_assert_ptr_nonnull(strstr(split("a ;", true), "second command"));
    ck_assert_str_eq(split("find . -exec rm {} \\;", true), "find|.|-exec|rm|{}|;|");
    ck_assert_str_eq(split("a;b ';'", true), "a;b|;|");
    ck_assert_str_eq(split("a ; b", false), "a|;|b|");
}

TEST(dollars_are_not_expanded)
{
    ck_assert_str_eq(split("sh -c 'echo $HOME ${HOME} $$'", true), "sh|-c|echo $HOME ${HOME} $$|");
}

TEST(specifiers_are_expanded)
{
    static const char *const cases[][2] = {
        {"plain", "plain"},
        {"%n", "digest"},
        {"--slot=%i", "--slot=4294967295"},
        {"%n/%i%%", "digest/4294967295%"},
        {"%%n", "%n"},
        {"", ""},
    };

    for (size_t i = 0; i < ELEMENTS(cases); i++) {
        char *expanded;

        ck_assert_int_eq(words_bad_specifier(cases[i][0]), 0);
        ck_assert_int_eq(words_expand(cases[i][0], "digest", 4294967295u, &expanded), 0);
        ck_assert_str_eq(expanded, cases[i][1]);
        free(expanded);
    }
}

TEST(unknown_specifiers_are_found)
{
    char *expanded;

    ck_assert_int_eq(words_bad_specifier("%n%H"), 'H');
    ck_assert_int_eq(words_bad_specifier("100%"), '%');
    ck_assert_int_eq(words_expand("%H", "digest", 0, &expanded), -EINVAL);
}

TEST(a_word_has_its_place_in_a_list)
{
    ck_assert_int_eq(words_find("a, bc, b", "a"), 0);
    ck_assert_int_eq(words_find("a, bc, b", "b"), 2);
    ck_assert_int_eq(words_find("a, bc, b", "c"), -1);
    ck_assert_int_eq(words_find("a, bc, b", "a, bc"), -1);
    ck_assert_int_eq(words_find("a, bc, b", ""), -1);
}
