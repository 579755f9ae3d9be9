/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/show/list.h"
#include "tests/unit/suite.h"

#define NOW (1000 * USEC_PER_SEC)

static json_t *object;

static void set_up(void)
{
    object =
        json_loads("{\"name\":\"g\",\"n\":2000,\"one\":1,\"zero\":0,\"below\":-7,\"empty\":\"\","
                   "\"yes\":true,\"no\":false,\"at\":997000000,\"end\":999000000,"
                   "\"inner\":{\"text\":\"first\\nlast\\n\"},\"list\":[\"a\",\"b\"],"
                   "\"steers\":\"\\u001b[2J\",\"cause\":\"no_match\","
                   "\"open\":\"f (\",\"blank\":\"g \",\"spaced\":\"first\\n\\n\"}",
                   0, NULL);
    ck_assert_ptr_nonnull(object);
}

static void tear_down(void)
{
    json_decref(object);
}

static void check(const char *pattern, const char *expected)
{
    char *text = pattern_text(pattern, object, NOW);

    ck_assert_str_eq(text, expected);
    free(text);
}

TEST(members_are_written_in_their_format)
{
    check("{name} {n} {n:count} {below} {zero}", "g 2000 2,000 -7 0");
    check("{at:age} {at:ago} {end-at:span}", "3.0s 3.0s ago 2.0s");
    check("{inner.text:line}", "first …");
    check("{inner.text:last} {list:first} {list:count}", "last a 2");
    check("{one} job{one:s}, {n} job{n:s} {cause:enum}", "1 job, 2000 jobs no-match");
    check("{steers}", "\\x1b[2J");
    check("{missing}{missing:count}{name.missing}", "0");
}

TEST(a_part_is_left_out_if_a_member_is_not_given)
{
    check("[{name}][{missing}][{empty}][{yes}yes][{no}no][{zero}]", "gyes0");
    check("[{missing:if}a|{no}b|c]", "c");
    check("[[{missing}][{empty}]|none]", "none");
    check("[{name}: <[{missing}]>|none]", "none");
    check("[{name}: <[{n}]>|none]", "g: 2000");
    check("[{spaced:last}|none][: {spaced:last}]{spaced:line}", "nonefirst …");
}

TEST(conditions_write_nothing)
{
    check("[{name=g}a][{name=h}b][{no=false}c][{one=1}d][{missing=}e][{empty=}f]", "acdf");
    check("[{n>1999}a][{n>2000}b][{list>1}c][{missing>0}d][{zero>0:count}e]", "ac");
    check("[{cause/no_}][{cause/yes_}]", "match");
}

TEST(separators_stand_only_between_parts)
{
    check("x: [, {missing} a][, {n} b][; {one} c]", "x: 2000 b; 1 c");
    check("[, {n} b]([, {one} c])", "2000 b(1 c)");
    check("{open}, {n}; {blank}[, {missing}|; " RED "{one}" PLAIN "], {n}",
          "f (, 2000; g ; " RED "1" PLAIN ", 2000");
    check("[{name}: [, {open}][{missing}], {n}]", "g: f (, 2000");
}

static void check_list(const char *indent, const struct list_column *columns, const char *items,
                       const char *expected)
{
    struct terminal terminal = {.utf8 = true};
    json_t *list = json_loads(items, 0, NULL);
    char *output = NULL;
    size_t size;

    terminal.file = open_memstream(&output, &size);
    list_print(&terminal, indent, columns, list, NOW);
    fclose(terminal.file);
    ck_assert_str_eq(output, expected);
    free(output);
    json_decref(list);
}

TEST(columns_are_aligned_whatever_marks_they_carry)
{
    static const struct list_column columns[] = {
        {NULL, RED "{a}" PLAIN, LIST_LEFT},
        {NULL, "{b}", LIST_RIGHT},
        {NULL, "{c}", LIST_LEFT},
        {NULL, "[{note}]", LIST_NOTE},
        {0},
    };

    check_list("> ", columns,
               "[{\"a\":\"● a\",\"b\":1,\"c\":\"first\",\"note\":\"a note\"},"
               "{\"a\":\"long name\",\"b\":1000}]",
               "> ● a           1  first\n"
               "a note\n"
               "> long name  1000\n");
}

TEST(a_column_that_is_empty_throughout_takes_no_room)
{
    static const struct list_column columns[] = {
        {NULL, "{a}", LIST_LEFT}, {NULL, "{b}", LIST_LEFT}, {NULL, "{c}", LIST_LEFT}, {0}};

    check_list("", columns, "[{\"a\":\"a\",\"c\":\"b\"}]", "a  b\n");
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
