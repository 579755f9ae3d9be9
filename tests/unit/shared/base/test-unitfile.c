/* SPDX-License-Identifier: MIT */
#include "shared/base/unitfile.h"
#include "tests/unit/suite.h"

/* What the handlers saw, one line each: "3 [Pool] Size=4", "2 [Pool]", "5 ! text". */
struct record {
    char text[4096];
    int assignment_result, section_result;
};

static void add(struct record *record, const char *text)
{
    ck_assert_uint_lt(strlen(record->text) + strlen(text), sizeof(record->text));
    strcat(record->text, text);
}

static int on_section(void *userdata, unsigned line, const char *section)
{
    struct record *record = userdata;
    char text[256];

    snprintf(text, sizeof(text), "%u [%s]\n", line, section);
    add(record, text);
    return strcmp(section, "Skipped") == 0 ? UNITFILE_E_SKIP : record->section_result;
}

static int on_assignment(void *userdata, const struct unitfile_assignment *assignment)
{
    struct record *record = userdata;
    char text[256];

    snprintf(text, sizeof(text), "%u [%s] %s=%s.\n", assignment->line, assignment->section,
             assignment->key, assignment->value);
    add(record, text);
    return record->assignment_result;
}

static int on_problem(void *userdata, unsigned line, const char *text)
{
    char buffer[256];

    snprintf(buffer, sizeof(buffer), "%u ! %s\n", line, text);
    add(userdata, buffer);
    return 0;
}

static int parse_into(struct record *record, const char *text, size_t size)
{
    const struct unitfile_handlers handlers = {
        .section = on_section,
        .assignment = on_assignment,
        .problem = on_problem,
        .userdata = record,
    };

    return unitfile_parse(text, size, &handlers);
}

static const char *parse(const char *text)
{
    static struct record record;

    record = (struct record){0};
    ck_assert_int_eq(parse_into(&record, text, strlen(text)), 0);
    return record.text;
}

static const struct {
    const char *what, *text, *seen;
} FILES[] = {
    {"sections and assignments come in order with their lines",
     "[Group]\nType=actor\n\n[Pool]\nSize = 4 \n",
     "1 [Group]\n2 [Group] Type=actor.\n4 [Pool]\n5 [Pool] Size=4.\n"},
    {"comments and blank lines are left out", "# a\n; b\n  # c\n\t\n[A]\nk=v # not a comment\n",
     "5 [A]\n6 [A] k=v # not a comment.\n"},
    {"repeated and empty assignments are all reported", "[A]\nk=1\nk=2\nk=\n",
     "1 [A]\n2 [A] k=1.\n3 [A] k=2.\n4 [A] k=.\n"},
    {"a backslash continues a line as a space", "[A]\nk=one\\\ntwo \\\n   three\nl=x\n",
     "1 [A]\n2 [A] k=one two     three.\n5 [A] l=x.\n"},
    {"comments within a continued line vanish",
     "[A]\nk=one\\\n# a comment\\\n; another\n two\nl=x\n",
     "1 [A]\n2 [A] k=one  two.\n6 [A] l=x.\n"},
    {"a blank line ends a continued one", "[A]\nk=one\\\n\nl=x\n",
     "1 [A]\n2 [A] k=one.\n4 [A] l=x.\n"},
    {"two backslashes at the end continue nothing", "[A]\nk=one\\\\\nl=x\n",
     "1 [A]\n2 [A] k=one\\\\.\n3 [A] l=x.\n"},
    {"the third one continues", "[A]\nk=one\\\\\\\ntwo\n", "1 [A]\n2 [A] k=one\\\\ two.\n"},
    {"the end of the file ends a continued line", "[A]\nk=one\\", "1 [A]\n2 [A] k=one.\n"},
    {"so does its end in a comment", "[A]\nk=one\\\n# c", "1 [A]\n2 [A] k=one.\n"},
    {"files of other systems are read", "\xef\xbb\xbf[A]\r\nk=v\r\n", "1 [A]\n2 [A] k=v.\n"},
    {"their lines are continued", "[A]\r\nk=one\\\r\ntwo\r\nl=x\r\n",
     "1 [A]\n2 [A] k=one two.\n4 [A] l=x.\n"},
    {"only the first equals sign separates", "[A]\nk=a=b\n", "1 [A]\n2 [A] k=a=b.\n"},
    {"assignments of a skipped section are not reported", "[Skipped]\nk=v\n[A]\nk=w\n",
     "1 [Skipped]\n3 [A]\n4 [A] k=w.\n"},
    {"broken lines are reported and the rest is read", "k=v\n[A]\nword\n=v\nk=v\n",
     "1 ! an assignment before the first [Section]\n2 [A]\n"
     "3 ! neither [Section], Key=value, nor a comment (# or ;)\n"
     "4 ! the key is missing before '='\n5 [A] k=v.\n"},
    {"an empty file says nothing", "", ""},
    {"nor do blank lines", "\n\n", ""},
};

TEST(a_file_is_read_as_its_syntax_says, .n = ELEMENTS(FILES))
{
    ck_assert_msg(strcmp(parse(FILES[_i].text), FILES[_i].seen) == 0, "%s: %s", FILES[_i].what,
                  parse(FILES[_i].text));
}

TEST(assignments_after_a_broken_header_belong_to_no_section)
{
    const char *header = "a section is written [Name], with nothing after the bracket";
    char expected[256];

    snprintf(expected, sizeof(expected), "1 [A]\n2 ! %s\n4 ! %s\n6 [B]\n7 [B] k=v.\n", header,
             header);
    ck_assert_str_eq(parse("[A]\n[B\nk=1\n[B] x\nk=2\n[B]\nk=v\n"), expected);
    ck_assert_str_eq(parse("[]\nk=v\n"),
                     "1 ! the name of the section is missing between the brackets\n");
    ck_assert_str_eq(parse("["),
                     "1 ! a section is written [Name], with nothing after the bracket\n");
}

TEST(what_is_not_text_is_refused_line_by_line)
{
    struct record record = {0};
    static const char text[] = "[A]\nk=\xff\nl=a\0b\nm=\xc3\xa4\n";

    ck_assert_int_eq(parse_into(&record, text, sizeof(text) - 1), 0);
    ck_assert_str_eq(record.text, "1 [A]\n2 ! is not valid UTF-8\n3 ! contains a NUL byte\n"
                                  "4 [A] m=\xc3\xa4.\n");
}

TEST(an_error_of_a_handler_ends_the_parsing)
{
    struct record record = {.assignment_result = -ENOMEM};
    static const char text[] = "[A]\nk=v\nl=w\n";

    ck_assert_int_eq(parse_into(&record, text, sizeof(text) - 1), -ENOMEM);
    ck_assert_str_eq(record.text, "1 [A]\n2 [A] k=v.\n");
    record = (struct record){.section_result = -EIO};
    ck_assert_int_eq(parse_into(&record, text, sizeof(text) - 1), -EIO);
}

static char directory[] = "/tmp/troupe-unitfile-XXXXXX";

static void enter_directory(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
}

static void leave_directory(void)
{
    (void)unlink("file");
    ck_assert_int_eq(rmdir(directory), 0);
}

static void write_file(size_t size)
{
    FILE *file = fopen("file", "w");

    ck_assert_ptr_nonnull(file);
    for (size_t i = 0; i < size; i++)
        fputc('\n', file);
    ck_assert_int_eq(fclose(file), 0);
}

TEST(a_file_that_is_larger_than_it_seems_is_read_whole)
{
    char *text;
    size_t size;

    ck_assert_int_eq(unitfile_read("/proc/self/status", &text, &size), 0);
    ck_assert_uint_gt(size, 5);
    ck_assert_mem_eq(text, "Name:", 5);
    ck_assert_int_eq(text[size - 1], '\n');
    free(text);
}

TEST(files_up_to_the_limit_are_read)
{
    char *text;
    size_t size;

    write_file(UNITFILE_SIZE_MAX);
    ck_assert_int_eq(unitfile_read("file", &text, &size), 0);
    ck_assert_uint_eq(size, UNITFILE_SIZE_MAX);
    free(text);
    write_file(0);
    ck_assert_int_eq(unitfile_read("file", &text, &size), 0);
    ck_assert_uint_eq(size, 0);
    free(text);
    write_file(UNITFILE_SIZE_MAX + 1);
    ck_assert_int_eq(unitfile_read("file", &text, &size), UNITFILE_E_TOO_LARGE);
}

TEST(what_is_no_file_is_not_read)
{
    char *text;
    size_t size;

    ck_assert_int_eq(unitfile_read("missing", &text, &size), -ENOENT);
    ck_assert_int_eq(unitfile_read("/dev/null", &text, &size), UNITFILE_E_NOT_REGULAR);
    ck_assert_int_eq(unitfile_read(".", &text, &size), UNITFILE_E_NOT_REGULAR);
    ck_assert_int_eq(mkfifo("file", 0600), 0);
    ck_assert_int_eq(unitfile_read("file", &text, &size), UNITFILE_E_NOT_REGULAR);
}

const struct suite suite = {.setup = enter_directory, .teardown = leave_directory};
