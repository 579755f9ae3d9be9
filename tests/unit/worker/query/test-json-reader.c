/* SPDX-License-Identifier: MIT */
#include "tests/unit/suite.h"
#include "worker/query/json-reader.h"

TEST(members_are_found_by_their_path_whatever_stands_around_them)
{
    static const char text[] =
        " {\"a\" : {\"b\":\"}\\\"\",\"c\":[1,{\"d\":2}]},\n\"ab\":true , \"n\":-5}";
    const char *object = text + 1;
    int64_t number;
    char string[16];

    ck_assert_int_eq(json_reader_string(json_reader_member(object, "a.b"), string), 2);
    ck_assert_str_eq(string, "}\"");
    ck_assert_int_eq(*json_reader_member(object, "ab"), 't');
    ck_assert_int_eq(json_reader_number(json_reader_member(object, "n"), &number), 0);
    ck_assert_int_eq(number, -5);
    ck_assert_ptr_null(json_reader_member(object, "b"));
    ck_assert_ptr_null(json_reader_member(object, "a.b.c"));
    ck_assert_ptr_null(json_reader_member(object, "a.d"));
}

TEST(elements_come_one_after_the_other)
{
    const char *at = json_reader_first("[ {\"x\":[]} , \"]\",3 ]");

    ck_assert_int_eq(*at, '{');
    at = json_reader_next(at);
    ck_assert_int_eq(*at, '"');
    at = json_reader_next(at);
    ck_assert_int_eq(*at, '3');
    ck_assert_ptr_null(json_reader_next(at));
    ck_assert_ptr_null(json_reader_first("[ ]"));
    ck_assert_ptr_null(json_reader_first("{}"));
}

TEST(strings_are_read_with_all_their_escapes)
{
    char string[64];

    ck_assert_int_eq(json_reader_string("\"\\n\\t\\\\\\/\\u00e9\\u20ac\\ud83d\\ude00\"", string),
                     13);
    ck_assert_str_eq(string, "\n\t\\/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    ck_assert_int_eq(json_reader_string("\"\\u0000\"", string), -EINVAL);
    ck_assert_int_eq(json_reader_string("\"\\ud83d\"", string), -EINVAL);
    ck_assert_int_eq(json_reader_string("\"\\x\"", string), -EINVAL);
    ck_assert_int_eq(json_reader_string("5", string), -EINVAL);
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
        ck_assert_ptr_null(json_reader_skip(part));
        a = json_reader_member(part, "a");
        element = a ? json_reader_first(a) : NULL;
        if (element) {
            const char *b = json_reader_member(element, "b");
            if (b)
                (void)json_reader_string(b, string);
            (void)json_reader_next(element);
        }
        free(part);
        free(string);
    }
}

const struct suite suite = {.name = "json-reader"};
