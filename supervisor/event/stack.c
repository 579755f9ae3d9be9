/* SPDX-License-Identifier: MIT */
#include "supervisor/event/stack.h"
#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX 7

/* The fields of a line, as strings in one buffer. */
struct fields {
    char buffer[2048];
    char *field[FIELDS_MAX];
    size_t n;
};

static bool split(struct stack_reader *reader, struct fields *ret)
{
    const char *end = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
    const size_t size = end ? (size_t)(end - reader->at) : 0;
    char *at = ret->buffer;

    ret->n = 0;
    if (!end || size >= sizeof(ret->buffer))
        return false;
    memcpy(ret->buffer, reader->at, size);
    ret->buffer[size] = '\0';
    reader->at = end + 1;
    while (ret->n < FIELDS_MAX && at)
        ret->field[ret->n++] = strsep(&at, "\t");
    return true;
}

static void take_text(const char *field, char ret[STACK_FIELD_MAX])
{
    (void)utf8_escape(ret, STACK_FIELD_MAX, field, strlen(field));
}

bool stack_next(struct stack_reader *reader, struct stack_line *ret)
{
    struct fields fields;
    char **field = fields.field;

    if (reader->at == reader->end || !split(reader, &fields))
        return false;
    *ret = (struct stack_line){.is_thread = strcmp(field[0], "T") == 0};
    if (ret->is_thread && fields.n == 4) {
        ret->thread = strtoll(field[1], NULL, 10);
        take_text(field[2], ret->name);
        ret->crashed = strcmp(field[3], "crashed") == 0;
        ret->running = strcmp(field[3], "running") == 0;
        return true;
    }
    if (strcmp(field[0], "F") != 0 || fields.n != FIELDS_MAX)
        return false;
    ret->python = strcmp(field[1], "python") == 0;
    take_text(field[2], ret->module);
    take_text(field[3], ret->function);
    ret->offset = strtoull(field[4], NULL, 10) & INT64_MAX;
    take_text(field[5], ret->file);
    ret->line = strtoll(field[6], NULL, 10);
    return true;
}

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* In a program that is linked statically, the C library is known by its names only. */
static bool is_ours(const struct stack_line *line)
{
    static const char *const names[] = {"raise",     "gsignal",      "abort", "malloc_printerr",
                                        "_int_free", "munmap_chunk", "free",  "unlink_chunk"};
    static const char *const others[] = {"libc.so",    "libc-",      "ld-linux",
                                         "libpthread", "[vdso]",     "libpython3",
                                         "python3",    "libasan.so", "libtsan.so"};

    for (size_t i = 0; i < ELEMENTS(others); i++)
        if (begins(line->module, others[i]))
            return false;
    for (size_t i = 0; i < ELEMENTS(names); i++)
        if (strcmp(line->function, names[i]) == 0)
            return false;
    return line->function[0] != '\0' && !begins(line->function, "__");
}

static void write_frame(const struct stack_line *line, char *buffer, size_t size)
{
    const char *slash = strrchr(line->file, '/');
    const char *file = slash ? slash + 1 : line->file;

    if (line->line > 0 && file[0] != '\0')
        (void)snprintf(buffer, size, "%s, %s:%" PRId64, line->function, file, line->line);
    else
        (void)snprintf(buffer, size, "%s%s%s", line->function, line->module[0] ? ", " : "",
                       line->module);
}

bool stack_top(const char *text, size_t size, char *buffer, size_t buffer_size)
{
    struct stack_reader reader = {text, text + size};
    bool found = false;
    unsigned n_threads = 0;
    struct stack_line line;

    while (stack_next(&reader, &line)) {
        n_threads += line.is_thread;
        if (n_threads > 1)
            break;
        if (line.is_thread || line.function[0] == '\0' || (found && !is_ours(&line)))
            continue;
        write_frame(&line, buffer, buffer_size);
        found = true;
        if (is_ours(&line))
            return true;
    }
    return found;
}
