/* SPDX-License-Identifier: MIT */
#include "shared/base/log.h"
#include "tests/unit/suite.h"

static struct {
    unsigned lines;
    enum log_level level;
    char message[16384];
    char field[64];
    size_t n_fields;
} seen;

static void sink(enum log_level level, struct log_fields fields, const char *message)
{
    seen.lines++;
    seen.level = level;
    seen.n_fields = fields.n_fields;
    if (fields.n_fields > 0)
        strcpy(seen.field, fields.fields[0].value);
    ck_assert_uint_lt(strlen(message), sizeof(seen.message));
    strcpy(seen.message, message);
    errno = EBADF; /* as a sink that failed would */
}

static void setup(void)
{
    log_init("trouped", LOG_LEVEL_INFO);
    log_set_sink(sink);
}

/* Lets `write` run with standard error going into a pipe, and returns what came out. */
static const char *standard_error_of(void (*write_lines)(void))
{
    static char text[16384];
    int fds[2], saved = dup(STDERR_FILENO);

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    ck_assert_int_ge(dup2(fds[1], STDERR_FILENO), 0);
    write_lines();
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    ssize_t size = read(fds[0], text, sizeof(text) - 1);
    ck_assert_int_ge(size, 0);
    text[size] = '\0';
    close_fd(saved);
    close_fd(fds[0]);
    close_fd(fds[1]);
    return text;
}

static void write_one(void)
{
    log_set_sink(NULL);
    log_warning("queue of %s is %d %% full", "digest", 90);
}

TEST(without_a_sink_a_line_goes_to_standard_error)
{
    ck_assert_str_eq(standard_error_of(write_one),
                     "trouped: warning: queue of digest is 90 % full\n");
}

TEST(without_a_name_the_line_starts_with_the_level)
{
    log_init(NULL, LOG_LEVEL_INFO);
    ck_assert_str_eq(standard_error_of(write_one), "warning: queue of digest is 90 % full\n");
}

/* A pipe as standard error that nobody reads. */
static int unread_standard_error(int size, int *ret_saved)
{
    int fds[2];

    *ret_saved = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    ck_assert_int_ge(fcntl(fds[0], F_SETPIPE_SZ, size), size);
    ck_assert_int_ge(dup2(fds[1], STDERR_FILENO), 0);
    close_fd(fds[1]);
    log_set_sink(NULL);
    return fds[0];
}

/* What is in the pipe by now. */
static const char *read_now(int fd)
{
    static char text[1 << 17];

    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    ssize_t size = read(fd, text, sizeof(text) - 1);
    ck_assert_int_gt(size, 0);
    text[size] = '\0';
    return text;
}

TEST(a_log_that_nobody_reads_stops_nobody_and_says_what_is_lost)
{
    int saved, fd = unread_standard_error(65536, &saved);
    unsigned n = 0;

    for (unsigned i = 0; i < 10000; i++)
        log_info("line %u", i);
    for (const char *at = read_now(fd); (at = strchr(at, '\n')); at++)
        n++;
    log_info("again");
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    char expected[256];
    (void)snprintf(
        expected, sizeof(expected),
        "trouped: warning: %u lines are lost: the reader is too slow\ntrouped: info: again\n",
        10000 - n);
    ck_assert_uint_gt(n, 100);
    ck_assert_str_eq(read_now(fd), expected);
    close_fd(saved);
    close_fd(fd);
}

TEST(a_line_that_is_read_in_part_only_ends_where_that_is_said)
{
    int saved, fd = unread_standard_error(4096, &saved);

    log_info("%s%07000d", "long", 1);
    ck_assert_ptr_null(strchr(read_now(fd), '\n'));
    log_info("again");
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    const char *text = read_now(fd);
    ck_assert_str_eq(text, "…\ntrouped: warning: 1 lines are lost: the reader is too slow\n");
    close_fd(saved);
    close_fd(fd);
}

TEST(a_sink_gets_level_fields_and_message)
{
    log_write(LOG_LEVEL_NOTICE, LOG_FIELDS({"TROUPE_WORKER", "digest/0"}, {"TROUPE_JOB", NULL}),
              "worker %s is ready", "digest/0");
    ck_assert_uint_eq(seen.lines, 1);
    ck_assert_int_eq(seen.level, LOG_LEVEL_NOTICE);
    ck_assert_uint_eq(seen.n_fields, 2);
    ck_assert_str_eq(seen.field, "digest/0");
    ck_assert_str_eq(seen.message, "worker digest/0 is ready");
}

TEST(lines_below_the_level_are_dropped)
{
    log_debug("not wanted");
    ck_assert_uint_eq(seen.lines, 0);
    ck_assert(!log_enabled(LOG_LEVEL_DEBUG));
    log_set_max_level(LOG_LEVEL_DEBUG);
    log_debug("wanted");
    ck_assert_uint_eq(seen.lines, 1);
    log_set_max_level(LOG_LEVEL_ERROR);
    log_warning("not wanted");
    ck_assert_uint_eq(seen.lines, 1);
    ck_assert(log_enabled(LOG_LEVEL_ERROR));
}

TEST(errno_is_printed_and_kept)
{
    errno = ENOENT;
    log_error("cannot open: %m");
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_str_eq(seen.message, "cannot open: No such file or directory");
}

TEST(a_long_line_is_cut_with_an_ellipsis)
{
    static char text[10000];

    memset(text, 'x', sizeof(text) - 1);
    log_info("%s", text);
    ck_assert_uint_eq(strlen(seen.message), 8191);
    ck_assert_str_eq(seen.message + 8191 - strlen("…"), "…");
    ck_assert_int_eq(seen.message[8000], 'x');
}

TEST(what_is_no_printable_utf8_becomes_question_marks)
{
    log_info("a\tb\nc\x1b[m \x7f \xc2\x9b \xff \xc3\xa4 \xe2\x82");
    ck_assert_str_eq(seen.message, "a b c?[m ? ?? ? \xc3\xa4 ??");
}

TEST(a_cut_never_splits_a_character)
{
    for (int shift = 0; shift < 3; shift++) {
        static char text[12000];
        size_t at = (size_t)shift;

        memset(text, 'x', at);
        for (; at + 3 < sizeof(text); at += 3)
            memcpy(text + at, "\xe2\x82\xac", 3); /* the euro sign */
        text[at] = '\0';
        log_info("%s", text);
        at = strlen(seen.message) - strlen("…");
        ck_assert_str_eq(seen.message + at, "…");
        ck_assert_uint_eq((at - (size_t)shift) % 3, 0);
    }
}

TEST(a_message_can_neither_forge_lines_nor_drive_a_terminal)
{
    log_info("one\ntwo\tthree\x1b[31m\x7f\r\n");
    ck_assert_str_eq(seen.message, "one two three?[31m??");
}

TEST(levels_have_names)
{
    static const struct {
        const char *name;
        enum log_level level;
    } names[] = {
        {"error", LOG_LEVEL_ERROR},  {"err", LOG_LEVEL_ERROR},     {"warning", LOG_LEVEL_WARNING},
        {"warn", LOG_LEVEL_WARNING}, {"notice", LOG_LEVEL_NOTICE}, {"info", LOG_LEVEL_INFO},
        {"debug", LOG_LEVEL_DEBUG},
    };
    enum log_level level;

    for (size_t i = 0; i < ELEMENTS(names); i++) {
        ck_assert_int_eq(log_level_from_string(names[i].name, &level), 0);
        ck_assert_int_eq(level, names[i].level);
    }
    ck_assert_int_eq(log_level_from_string("verbose", &level), -EINVAL);
    ck_assert_int_eq(log_level_from_string("", &level), -EINVAL);
}

const struct suite suite = {.setup = setup};
