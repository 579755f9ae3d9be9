/* SPDX-License-Identifier: MIT */
#include "supervisor/event/stack.h"
#include "tests/unit/suite.h"
#include <string.h>

static struct stack_line line;

static bool next(struct stack_reader *reader)
{
    return stack_next(reader, &line);
}

static struct stack_reader reader_of(const char *text)
{
    return (struct stack_reader){text, text + strlen(text)};
}

TEST(threads_and_frames_are_read)
{
    struct stack_reader reader = reader_of("T\t7\tworker\tcrashed\n"
                                           "F\tc\tlibx.so\tparse\t12\t/src/image.c\t311\n"
                                           "F\tpython\t\tmain\t0\t/app/main.py\t0\n");

    ck_assert(next(&reader));
    ck_assert(line.is_thread && line.crashed && !line.running);
    ck_assert_int_eq(line.thread, 7);
    ck_assert_str_eq(line.name, "worker");
    ck_assert(next(&reader));
    ck_assert(!line.is_thread && !line.python);
    ck_assert_str_eq(line.module, "libx.so");
    ck_assert_str_eq(line.function, "parse");
    ck_assert_int_eq(line.line, 311);
    ck_assert(next(&reader));
    ck_assert(line.python);
    ck_assert_str_eq(line.module, "");
    ck_assert(!next(&reader));
}

TEST(what_makes_no_sense_ends_the_text)
{
    static const char *const texts[] = {
        "",
        "T",
        "T\t1\tname\t",
        "X\ta\n",
        "T\t1\tname\n",
        "F\tc\tm\tf\t0\tfile\n",
        "\n",
        "\t\t\t\t\t\t\n",
    };
    char big[4096];

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct stack_reader reader = reader_of(texts[i]);
        ck_assert_msg(!next(&reader), "text %zu", i);
    }
    memset(big, 'T', sizeof(big));
    big[sizeof(big) - 1] = '\n';
    struct stack_reader reader = {big, big + sizeof(big)};
    ck_assert(!next(&reader));
}

TEST(texts_are_made_printable)
{
    struct stack_reader reader = reader_of("F\tc\t\x1b[31m\t\xff\xfe\t-1\tfile\t-5\n");

    ck_assert(next(&reader));
    ck_assert_str_eq(line.module, "\\x1b[31m");
    ck_assert_str_eq(line.function, "\\xff\\xfe");
    ck_assert(line.offset <= INT64_MAX);
}

TEST(the_top_is_the_first_function_that_is_not_of_the_c_library_or_the_interpreter)
{
    static const struct {
        const char *text, *top;
    } cases[] = {
        {"T\t1\tx\t\nF\tc\tlibc.so.6\traise\t0\t\t0\nF\tc\tapp\tparse\t0\t/a/image.c\t3\n",
         "parse, image.c:3"},
        {"T\t1\tx\t\nF\tc\tapp\t__libc_"
         "message\t0\t\t0\nF\tc\tapp\tfree\t0\t\t0\nF\tc\tapp\tuse\t0\t\t0\n",
         "use, app"},
        {"T\t1\tx\t\nF\tc\tlibpython3.13.so\tcall\t0\t\t0\nF\tpython\t\tf\t0\tm.py\t9\n",
         "f, m.py:9"},
        {"T\t1\tx\t\nF\tc\tlibc.so.6\tpause\t0\t\t0\nT\t2\ty\t\nF\tc\tapp\tother\t0\t\t0\n",
         "pause, libc.so.6"},
        {"T\t1\tx\trunning\n", NULL},
        {"", NULL},
    };
    char top[256];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const bool found = stack_top(cases[i].text, strlen(cases[i].text), top, sizeof(top));
        ck_assert_msg(found == (cases[i].top != NULL), "case %zu", i);
        if (found)
            ck_assert_str_eq(top, cases[i].top);
    }
}
