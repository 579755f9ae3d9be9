/* SPDX-License-Identifier: MIT */

/* JSON where it is: finding values, and the grammar. */

#include "shared/base/json-text.h"
#include "tests/unit/suite.h"

TEST(members_are_found_by_their_path_whatever_stands_around_them)
{
    static const char text[] =
        " {\"a\" : {\"b\":\"}\\\"\",\"c\":[1,{\"d\":2}]},\n\"ab\":true , \"n\":-5}";
    const char *object = text + 1;
    int64_t number;
    char string[16];

    ck_assert_int_eq(json_text_string(json_text_member(object, "a.b"), string), 2);
    ck_assert_str_eq(string, "}\"");
    ck_assert_int_eq(*json_text_member(object, "ab"), 't');
    ck_assert_int_eq(json_text_number(json_text_member(object, "n"), &number), 0);
    ck_assert_int_eq(number, -5);
    ck_assert_ptr_null(json_text_member(object, "b"));
    ck_assert_ptr_null(json_text_member(object, "a.b.c"));
    ck_assert_ptr_null(json_text_member(object, "a.d"));
}

TEST(elements_come_one_after_the_other)
{
    const char *at = json_text_first("[ {\"x\":[]} , \"]\",3 ]");

    ck_assert_int_eq(*at, '{');
    at = json_text_next(at);
    ck_assert_int_eq(*at, '"');
    at = json_text_next(at);
    ck_assert_int_eq(*at, '3');
    ck_assert_ptr_null(json_text_next(at));
    ck_assert_ptr_null(json_text_first("[ ]"));
    ck_assert_ptr_null(json_text_first("{}"));
}

TEST(strings_are_read_with_all_their_escapes)
{
    char string[64];

    ck_assert_int_eq(json_text_string("\"\\n\\t\\\\\\/\\u00e9\\u20ac\\ud83d\\ude00\"", string), 13);
    ck_assert_str_eq(string, "\n\t\\/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    ck_assert_int_eq(json_text_string("\"a\\u0000b\"", string), 3);
    ck_assert_mem_eq(string, "a\0b", 4);
    ck_assert_int_eq(json_text_string("\"\\ude00\"", string), -EINVAL);
    ck_assert_int_eq(json_text_string("\"\\ud83d\"", string), -EINVAL);
    ck_assert_int_eq(json_text_string("\"\\x\"", string), -EINVAL);
    ck_assert_int_eq(json_text_string("5", string), -EINVAL);
}

TEST(what_is_cut_off_anywhere_is_read_to_its_end_and_no_further)
{
    static const char text[] = "{\"a\":[{\"b\":\"\\u00e9\\n\"},-1],\"c\":true}";

    for (size_t size = 0; size < sizeof(text) - 1; size++) {
        /* Of exactly that size, for the sanitizers. */
        char *part = malloc(size + 1), *string = malloc(size + 1);
        const char *a, *element;

        memcpy(part, text, size);
        part[size] = '\0';
        ck_assert_ptr_null(json_text_skip(part));
        ck_assert(!json_text_check(part, size, 100));
        a = json_text_member(part, "a");
        element = a ? json_text_first(a) : NULL;
        if (element) {
            const char *b = json_text_member(element, "b");
            if (b)
                (void)json_text_string(b, string);
            (void)json_text_next(element);
        }
        free(part);
        free(string);
    }
}

TEST(members_come_one_after_the_other)
{
    const char *name = json_text_first("{\"a\":{\"b\":1} , \"c\" : 2}"),
               *value = json_text_value(name);

    ck_assert_int_eq(value[0], '{');
    name = json_text_next(value);
    ck_assert_int_eq(name[1], 'c');
    value = json_text_value(name);
    ck_assert_int_eq(*value, '2');
    ck_assert_ptr_null(json_text_next(value));
}

TEST(what_the_grammar_allows_is_json)
{
    static const char *const texts[] = {
        "{}",
        " [ ] ",
        "0",
        "-0.5e+7",
        "12E3",
        "true",
        "null",
        "\"\"",
        "\"\\u00e9\\\"\xc3\xa9\x7f\"",
        "{\"a\":[1,{\"b\":false}],\"\":\"}\"}",
        "\n{ \"a\" :\t1 , \"b\" : [ 2 , 3 ] }\r\n",
    };

    for (size_t i = 0; i < ELEMENTS(texts); i++)
        ck_assert_msg(json_text_check(texts[i], strlen(texts[i]), 100), "%s", texts[i]);
}

TEST(what_the_grammar_does_not_allow_is_no_json)
{
    static const char *const texts[] = {
        "",       "{",        "}",        "[1,]",        "[,1]",        "[1 2]", "{\"a\"}",
        "{a:1}",  "{\"a\":}", "{\"a\",}", "{1:2}",       "{\"a\":1,}",  "[1}",   "{\"a\":1]",
        "01",     "+1",       "-",        ".5",          "1.",          "1e",    "1.e5",
        "tru",    "True",     "nul",      "truefalse",   "1 2",         "\"",    "\"\\\"",
        "\"\n\"", "\"\\x\"",  "\"\xff\"", "\"\\ud800\"", "\"\\udc00\"", "'a'",   "\xef\xbb\xbf{}",
        "[1]x",   "//\n1",    "NaN",      "\"\\u12\"",
    };

    for (size_t i = 0; i < ELEMENTS(texts); i++)
        ck_assert_msg(!json_text_check(texts[i], strlen(texts[i]), 100), "%s", texts[i]);
    ck_assert(!json_text_check("1\0", 2, 100));
}

TEST(values_and_depth_are_bounded)
{
    char text[2 * JSON_TEXT_DEPTH_MAX + 8] = "";

    ck_assert(json_text_check("[1,{\"a\":2}]", 11, 4));
    ck_assert(!json_text_check("[1,{\"a\":2}]", 11, 3));
    memset(text, '[', JSON_TEXT_DEPTH_MAX);
    memset(text + JSON_TEXT_DEPTH_MAX, ']', JSON_TEXT_DEPTH_MAX);
    ck_assert(json_text_check(text, strlen(text), 100));
    memset(text, '[', JSON_TEXT_DEPTH_MAX + 1);
    memset(text + JSON_TEXT_DEPTH_MAX + 1, ']', JSON_TEXT_DEPTH_MAX + 1);
    ck_assert(!json_text_check(text, strlen(text), 100));
}
