/* SPDX-License-Identifier: MIT */
#include "shared/base/unitfile.h"

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char BYTE_ORDER_MARK[] = "\xef\xbb\xbf";

struct parser {
    const struct unitfile_handlers *handlers;
    char *at, *end; /* in a private copy, which is cut up */
    unsigned line;  /* the physical line read last */
    char *section;  /* points into the copy; NULL = none yet */
    bool skip;      /* assignments of this section are not of interest */
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static char *skip_space(char *text)
{
    while (is_space(*text))
        text++;
    return text;
}

/* Ends the text that ends at `end` before its trailing white space. */
static void cut_space(char *text, char *end)
{
    while (end > text && is_space(end[-1]))
        end--;
    *end = '\0';
}

/* Returns the next physical line without its line end, "\n" or "\r\n", NUL-terminated in place,
 * with its end in `*ret_end`. NULL = no more. */
static char *next_line(struct parser *parser, char **ret_end)
{
    char *line = parser->at, *newline;

    if (line >= parser->end)
        return NULL;
    newline = memchr(line, '\n', (size_t)(parser->end - line));
    *ret_end = newline ? newline : parser->end;
    parser->at = newline ? newline + 1 : parser->end;
    if (*ret_end > line && (*ret_end)[-1] == '\r')
        (*ret_end)--;
    **ret_end = '\0';
    parser->line++;
    return line;
}

static bool is_comment(char *line)
{
    line = skip_space(line);
    return *line == '#' || *line == ';';
}

/* Whether the line continues: it ends with an odd number of backslashes. */
static bool is_continued(const char *line, const char *end)
{
    size_t n = 0;

    while (end > line && end[-1] == '\\') {
        end--;
        n++;
    }
    return n % 2 == 1;
}

static int problem(struct parser *parser, unsigned line, const char *text)
{
    return parser->handlers->problem(parser->handlers->userdata, line, text);
}

static int take_section(struct parser *parser, unsigned line, char *text, char *end)
{
    int r;

    /* What follows belongs to no section until the next valid header. */
    parser->skip = true;
    parser->section = NULL;
    if (end[-1] != ']')
        return problem(parser, line, "a section is written [Name], with nothing after the bracket");
    end[-1] = '\0';
    if (text[1] == '\0')
        return problem(parser, line, "the name of the section is missing between the brackets");
    r = parser->handlers->section(parser->handlers->userdata, line, text + 1);
    if (r < 0)
        return r;
    parser->section = text + 1;
    parser->skip = r == UNITFILE_E_SKIP;
    return 0;
}

static int take_assignment(struct parser *parser, unsigned line, char *text)
{
    char *equals = strchr(text, '=');
    char *value;

    if (!equals)
        return problem(parser, line, "neither [Section], Key=value, nor a comment (# or ;)");
    if (equals == text)
        return problem(parser, line, "the key is missing before '='");
    if (parser->skip)
        return 0;
    if (!parser->section)
        return problem(parser, line, "an assignment before the first [Section]");
    value = skip_space(equals + 1);
    cut_space(text, equals);
    return parser->handlers->assignment(parser->handlers->userdata, &(struct unitfile_assignment){
                                                                        .section = parser->section,
                                                                        .key = text,
                                                                        .value = value,
                                                                        .line = line,
                                                                    });
}

static int take_line(struct parser *parser, unsigned line, char *text, char *end)
{
    size_t size = (size_t)(end - text);

    if (memchr(text, '\0', size))
        return problem(parser, line, "contains a NUL byte");
    if (!utf8_is_text(text, size))
        return problem(parser, line, "is not valid UTF-8");
    text = skip_space(text);
    cut_space(text, end);
    if (*text == '\0')
        return 0;
    if (*text == '[')
        return take_section(parser, line, text, text + strlen(text));
    return take_assignment(parser, line, text);
}

/*
 * Appends the continuation lines in place, with a space for each backslash and without comments in
 * between. The text never gets longer, so the copy has the room.
 */
static void join_continued(struct parser *parser, char *line, char **end)
{
    char *next, *next_end;

    while (is_continued(line, *end)) {
        (*end)[-1] = ' ';
        do
            next = next_line(parser, &next_end);
        while (next && is_comment(next));
        if (!next)
            return;
        memmove(*end, next, (size_t)(next_end - next) + 1);
        line = *end;
        *end += next_end - next;
    }
}

int unitfile_parse(const char *text, size_t size, const struct unitfile_handlers *handlers)
{
    _cleanup_free_ char *copy = malloc(size + 1);
    struct parser parser = {.handlers = handlers};
    char *line, *end;
    int r = 0;

    if (!copy)
        return -ENOMEM;
    if (size > 0)
        memcpy(copy, text, size);
    copy[size] = '\0';
    parser.at = copy;
    parser.end = copy + size;
    if (strncmp(copy, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
        parser.at += strlen(BYTE_ORDER_MARK);
    while (r == 0 && (line = next_line(&parser, &end))) {
        unsigned first = parser.line;

        if (is_comment(line))
            continue;
        join_continued(&parser, line, &end);
        r = take_line(&parser, first, line, end);
    }
    return r;
}

/* `expected`: the file's size, unless it changes. */
static int read_whole(int fd, size_t expected, char **ret, size_t *ret_size)
{
    size_t room = expected < UNITFILE_SIZE_MAX ? expected + 1 : UNITFILE_SIZE_MAX + 1, size = 0;
    _cleanup_free_ char *text = malloc(room);
    char *more;
    ssize_t n = 1;

    while (text && n != 0) {
        n = read(fd, text + size, room - size);
        if (n < 0 && errno != EINTR)
            return -errno;
        size += n > 0 ? (size_t)n : 0;
        if (size > UNITFILE_SIZE_MAX)
            return UNITFILE_E_TOO_LARGE;
        if (size == room) {
            room = UNITFILE_SIZE_MAX + 1;
            more = realloc(text, room);
            if (!more)
                return -ENOMEM;
            (void)TAKE_PTR(text);
            text = more;
        }
    }
    if (!text)
        return -ENOMEM;
    *ret = TAKE_PTR(text);
    *ret_size = size;
    return 0;
}

int unitfile_read(const char *path, char **ret, size_t *ret_size)
{
    /* O_NONBLOCK: opening a FIFO without a writer would block. */
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return UNITFILE_E_NOT_REGULAR;
    return read_whole(fd, (size_t)status.st_size, ret, ret_size);
}
