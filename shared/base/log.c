/* SPDX-License-Identifier: MIT */
#include "shared/base/log.h"
#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LOG_LINE_MAX 8192
#define LOG_ELLIPSIS "…"

/* The first name of a level is the one that is printed. */
static const struct {
    const char *name;
    enum log_level level;
} level_names[] = {
    {"error", LOG_LEVEL_ERROR},  {"err", LOG_LEVEL_ERROR},     {"warning", LOG_LEVEL_WARNING},
    {"warn", LOG_LEVEL_WARNING}, {"notice", LOG_LEVEL_NOTICE}, {"info", LOG_LEVEL_INFO},
    {"debug", LOG_LEVEL_DEBUG},
};

static struct {
    const char *name;
    enum log_level max_level;
    log_sink_fn sink;
    unsigned long long n_lost; /* lines that could not be written to standard error */
    bool cut;                  /* only the beginning of the last line was written */
} state = {.max_level = LOG_LEVEL_INFO};

void log_init(const char *name, enum log_level max_level)
{
    state.name = name;
    state.max_level = max_level;
}

void log_set_sink(log_sink_fn sink)
{
    state.sink = sink;
}

void log_set_max_level(enum log_level max_level)
{
    state.max_level = max_level;
}

bool log_enabled(enum log_level level)
{
    return level <= state.max_level;
}

int log_level_from_string(const char *text, enum log_level *ret)
{
    for (size_t i = 0; i < ELEMENTS(level_names); i++)
        if (strcmp(text, level_names[i].name) == 0) {
            *ret = level_names[i].level;
            return 0;
        }
    return -EINVAL;
}

static const char *level_to_string(enum log_level level)
{
    for (size_t i = 0; i < ELEMENTS(level_names); i++)
        if (level_names[i].level == level)
            return level_names[i].name;
    return "unknown";
}

/* Replaces the end of a message that was cut by an ellipsis, at the boundary of a character. */
static void mark_cut(char *message, size_t size)
{
    size_t at = size - sizeof(LOG_ELLIPSIS);

    while (at > 0 && ((unsigned char)message[at] & 0xc0) == 0x80)
        at--;
    memcpy(message + at, LOG_ELLIPSIS, sizeof(LOG_ELLIPSIS));
}

/* Messages quote workers: they must not forge lines or control a terminal, and the journal shows
 * text that is not UTF-8 as a blob. */
static void flatten(char *message)
{
    size_t left = strlen(message), size;

    while (left > 0 && message[left - 1] == '\n')
        message[--left] = '\0';
    for (char *at = message; left > 0; at += size, left -= size) {
        size = utf8_printable(at, left);
        if (size > 0)
            continue;
        size = 1;
        *at = *at == '\n' || *at == '\t' ? ' ' : '?';
    }
}

/* Writes without blocking, so that a slow reader of the log cannot stop the program. A writable
 * pipe has room for PIPE_BUF bytes, so at most that much is written at a time. Returns whether the
 * whole line was written. */
static bool write_in_time(const char *line, size_t size)
{
    const char *start = line, *end = line + size;

    while (line < end) {
        struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
        size_t n = (size_t)(end - line);
        ssize_t written;

        if (poll(&room, 1, 0) == 0) {
            state.cut = state.cut || line > start;
            return false;
        }
        written = write(STDERR_FILENO, line, n < PIPE_BUF ? n : PIPE_BUF);
        if (written < 0)
            return true; /* There is nowhere to report this. */
        line += written;
    }
    return true;
}

static bool tell_lost(void)
{
    char line[128];
    int length;

    if (state.n_lost == 0)
        return true;
    length = snprintf(line, sizeof(line),
                      "%s%.64s%swarning: %llu lines are lost: the reader is too slow\n",
                      state.cut ? LOG_ELLIPSIS "\n" : "", state.name ? state.name : "",
                      state.name ? ": " : "", state.n_lost);
    if (!write_in_time(line, (size_t)length))
        return false;
    state.n_lost = 0;
    state.cut = false;
    return true;
}

static void write_standard_error(enum log_level level, const char *message)
{
    static char line[LOG_LINE_MAX + 128];
    int length = snprintf(line, sizeof(line), "%.64s%s%s: %s\n", state.name ? state.name : "",
                          state.name ? ": " : "", level_to_string(level), message);

    if (length > 0 && (!tell_lost() || !write_in_time(line, (size_t)length)))
        state.n_lost++;
}

void log_write(enum log_level level, struct log_fields fields, const char *format, ...)
{
    static char message[LOG_LINE_MAX];
    int saved = errno;
    va_list arguments;
    int length;

    if (!log_enabled(level))
        return;

    va_start(arguments, format);
    length = vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    if (length < 0)
        message[0] = '\0';
    else if ((size_t)length >= sizeof(message))
        mark_cut(message, sizeof(message));
    flatten(message);

    if (state.sink)
        state.sink(level, fields, message);
    else
        write_standard_error(level, message);
    errno = saved;
}

/* ---- priorities in output ---- */

#define LEVEL_SIZE 3

size_t line_level_size(const char *line, size_t size)
{
    return size >= LEVEL_SIZE && line[0] == '<' && line[1] >= '0' && line[1] <= '7' &&
                   line[2] == '>'
               ? LEVEL_SIZE
               : 0;
}

size_t line_levels_remove(char *lines, size_t size)
{
    size_t left = 0;

    for (size_t i = 0; i < size; i++) {
        if (i == 0 || lines[i - 1] == '\n')
            i += line_level_size(lines + i, size - i);
        if (i < size)
            lines[left++] = lines[i];
    }
    return left;
}
