/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/envfile.h"
#include "supervisor/config/syntax/strings.h"
#include "tests/unit/suite.h"

static int on_problem(void *userdata, unsigned line, const char *text)
{
    char *problems = userdata;

    sprintf(problems + strlen(problems), "%u!%s|", line, text);
    return 0;
}

/* The environment with '|' behind each variable, then the problems. Static. */
static const char *parse_bytes(const char *text, size_t size)
{
    static char joined[2048];
    char problems[1024] = "";
    struct config_strings environment = {0};

    joined[0] = '\0';
    ck_assert_int_eq(envfile_parse(text, size, &environment, on_problem, problems), 0);
    for (size_t i = 0; i < environment.n; i++) {
        strcat(joined, environment.strings[i]);
        strcat(joined, "|");
    }
    strcat(joined, problems);
    strings_clear(&environment);
    return joined;
}

static const char *parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

#define NO_ASSIGNMENT "!not KEY=VALUE with a KEY of letters, digits and _|"

static const struct {
    const char *what, *text, *parsed;
} FILES[] = {
    {"lines are variables", "A=1\nB = two words \n\nC=", "A=1|B=two words|C=|"},
    {"comments begin lines only", "# x\n; y\n  # z\nA=1 # part of it\n", "A=1 # part of it|"},
    {"later lines override earlier ones", "A=1\nB=2\nA=3\n", "A=3|B=2|"},
    {"files of other systems are read",
     "\xef\xbb\xbf"
     "A=1\r\nB=two\\\r\nlines\r\nC=\"x\r\ny\\\r\nz\"\r\n",
     "A=1|B=twolines|C=x\nyz|"},
    {"quotes protect space and line ends",
     "A=' x '\nB=\"a\nb\"\nC='it'\"'\"s \nD=\"\\\"\\\\\\$\\x\"\n",
     "A= x |B=a\nb|C=it's|D=\"\\$\\x|"},
    {"a backslash continues a line or protects a character", "A=one\\\ntwo\nB=x\\ \nC=\"y\\\nz\"\n",
     "A=onetwo|B=x |C=yz|"},
    {"a backslash at the end stays", "A=x\\", "A=x\\|"},
    {"what is no assignment is reported with its line",
     "A=\"1\n2\"\nnonsense\n1A=x\nA B=x\n=x\nC=3\n",
     "A=1\n2|C=3|3" NO_ASSIGNMENT "4" NO_ASSIGNMENT "5" NO_ASSIGNMENT "6" NO_ASSIGNMENT},
    {"an open quote is reported where its line begins", "A=1\nB='x\ny\n",
     "A=1|2!a quote is not closed|"},
};

TEST(a_file_is_read_as_its_syntax_says, .n = ELEMENTS(FILES))
{
    ck_assert_msg(strcmp(parse(FILES[_i].text), FILES[_i].parsed) == 0, "%s: %s", FILES[_i].what,
                  parse(FILES[_i].text));
}

TEST(what_is_not_text_is_reported)
{
    static const char text[] = "A=x\0y\nB=\xff\nC=1\n";

    ck_assert_str_eq(parse_bytes(text, sizeof(text) - 1),
                     "C=1|1!the value is not valid UTF-8 without NUL|"
                     "2!the value is not valid UTF-8 without NUL|");
}

TEST(setting_replaces_the_variable_of_exactly_that_name)
{
    struct config_strings environment = {0};

    ck_assert_int_eq(strings_set(&environment, "AB=1"), 0);
    ck_assert_int_eq(strings_set(&environment, "A=2"), 0);
    ck_assert_int_eq(strings_set(&environment, "AB=3"), 0);
    ck_assert_uint_eq(environment.n, 2);
    ck_assert_str_eq(environment.strings[0], "AB=3");
    ck_assert_str_eq(environment.strings[1], "A=2");
    strings_clear(&environment);
}

static int refuse(void *userdata, unsigned line, const char *text)
{
    return -EIO;
}

TEST(an_error_of_the_handler_ends_the_parsing)
{
    struct config_strings environment = {0};

    ck_assert_int_eq(envfile_parse("x\nA=1\n", 6, &environment, refuse, NULL), -EIO);
    ck_assert_ptr_null(environment.strings);
}
