/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/envfile.h"

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include "supervisor/config/syntax/strings.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *at, *end;
    unsigned line;
    char *out; /* KEY=VALUE being put together; long enough for the whole file */
    size_t size;
    size_t kept; /* up to here, trailing white space belongs to the value */
    envfile_problem_fn problem;
    void *userdata;
};

bool envfile_name_valid(const char *name, size_t size)
{
    if (size == 0 || (name[0] >= '0' && name[0] <= '9'))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!isascii(name[i]) || !(isalnum(name[i]) || name[i] == '_'))
            return false;
    return true;
}

static bool at_end(const struct reader *reader)
{
    return reader->at == reader->end;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static char next(struct reader *reader)
{
    char c = *reader->at++;

    reader->line += c == '\n';
    return c;
}

static void put(struct reader *reader, char c)
{
    reader->out[reader->size++] = c;
}

static void skip_line(struct reader *reader)
{
    while (!at_end(reader) && next(reader) != '\n')
        ;
}

/* Behind the opening quote. False: the file ends before the closing one. */
static bool take_quoted(struct reader *reader, char quote)
{
    while (!at_end(reader)) {
        char c = next(reader);

        if (c == quote)
            return true;
        if (c == '\\' && quote == '"' && !at_end(reader) && strchr("\"\\`$\n", *reader->at)) {
            c = next(reader);
            if (c == '\n')
                continue;
        }
        put(reader, c);
    }
    return false;
}

/* Up to the end of the line. False: a quote is not closed. */
static bool take_value(struct reader *reader)
{
    while (!at_end(reader) && is_blank(*reader->at))
        next(reader);
    while (!at_end(reader)) {
        char c = next(reader);

        if (c == '\n')
            break;
        if (c == '\'' || c == '"') {
            if (!take_quoted(reader, c))
                return false;
            reader->kept = reader->size;
        } else if (c == '\\' && !at_end(reader)) {
            c = next(reader);
            if (c != '\n') {
                put(reader, c);
                reader->kept = reader->size;
            }
        } else {
            put(reader, c);
        }
    }
    while (reader->size > reader->kept && is_blank(reader->out[reader->size - 1]))
        reader->size--;
    return true;
}

/* KEY before '='; the name goes to the output. False: this is no assignment. */
static bool take_name(struct reader *reader)
{
    const char *name = reader->at, *end = name, *name_end;

    while (end < reader->end && *end != '=' && *end != '\n')
        end++;
    if (end == reader->end || *end == '\n')
        return false;
    for (name_end = end; name_end > name && is_blank(name_end[-1]); name_end--)
        ;
    if (!envfile_name_valid(name, (size_t)(name_end - name)))
        return false;
    while (name < name_end)
        put(reader, *name++);
    put(reader, '=');
    reader->kept = reader->size;
    reader->at = end + 1;
    return true;
}

static int take_assignment(struct reader *reader, struct config_strings *environment)
{
    unsigned line = reader->line;

    reader->size = 0;
    if (!take_name(reader)) {
        skip_line(reader);
        return reader->problem(reader->userdata, line,
                               "not KEY=VALUE with a KEY of letters, digits and _");
    }
    if (!take_value(reader))
        return reader->problem(reader->userdata, line, "a quote is not closed");
    if (!utf8_is_text(reader->out, reader->size))
        return reader->problem(reader->userdata, line, "the value is not valid UTF-8 without NUL");
    put(reader, '\0');
    if (environment->n >= STRINGS_MAX) {
        reader->at = reader->end;
        return reader->problem(reader->userdata, line, "more than 4096 variables");
    }
    return strings_set(environment, reader->out);
}

/* Copies the text without a byte order mark, and with "\n" instead of "\r\n". Returns the size. */
static size_t copy_text(char *to, const char *text, size_t size)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t n = 0, i = 0;

    if (size >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0)
        i = strlen(mark);
    for (; i < size; i++)
        if (text[i] != '\r' || i + 1 == size || text[i + 1] != '\n')
            to[n++] = text[i];
    return n;
}

int envfile_parse(const char *text, size_t size, struct config_strings *environment,
                  envfile_problem_fn problem, void *userdata)
{
    _cleanup_free_ char *out = malloc(size + 2), *copy = malloc(size + 1);
    struct reader reader = {
        .at = copy,
        .line = 1,
        .out = out,
        .problem = problem,
        .userdata = userdata,
    };
    int r = 0;

    if (!out || !copy)
        return -ENOMEM;
    reader.end = copy + copy_text(copy, text, size);
    while (r == 0 && !at_end(&reader)) {
        if (*reader.at == '#' || *reader.at == ';')
            skip_line(&reader);
        else if (*reader.at == '\n' || is_blank(*reader.at))
            next(&reader);
        else
            r = take_assignment(&reader, environment);
    }
    return r;
}
