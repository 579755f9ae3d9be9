/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/text/terminal.h"

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include "supervisor/ctl/text/format.h"
#include <langinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <wchar.h>

static bool environment_wants_colors(void)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    return !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

void terminal_measure(struct terminal *terminal)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size = {0};
    long value = columns ? strtol(columns, NULL, 10) : 0;

    if (terminal->is_terminal)
        (void)ioctl(fileno(terminal->file), TIOCGWINSZ, &size);
    terminal->height = size.ws_row;
    terminal->width = size.ws_col;
    if (terminal->is_terminal && value > 0 && value < 10000)
        terminal->width = (unsigned)value;
}

void terminal_init(struct terminal *terminal, FILE *file)
{
    *terminal = (struct terminal){.file = file, .is_terminal = isatty(fileno(file)) == 1};
    terminal->colors = terminal->is_terminal && environment_wants_colors();
    terminal->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    terminal_measure(terminal);
}

bool terminal_write(const struct terminal *terminal, const void *data, size_t size)
{
    const char *bytes = data;

    if (fwrite(bytes, 1, size, terminal->file) != size)
        return false;
    return !terminal->is_terminal || size == 0 || bytes[size - 1] == '\n' ||
           fputc('\n', terminal->file) != EOF;
}

static const char *mark_sequence(char mark)
{
    static const char *const sequences[] = {
        [1] = "\033[0m",  [2] = "\033[1m",  [3] = "\033[2m",
        [4] = "\033[31m", [5] = "\033[32m", [6] = "\033[33m",
    };
    unsigned i = (unsigned char)mark;

    return i < ELEMENTS(sequences) ? sequences[i] : NULL;
}

/* The ASCII replacement of a character. */
static const char *ascii_for(const char *character, size_t length)
{
    static const char *const pairs[][2] = {
        {"●", "*"}, {"○", "o"}, {"◐", "~"}, {"✗", "x"}, {"│", "|"}, {"…", "~"},
        {"–", "-"}, {"→", ">"}, {"·", "-"}, {"━", "="}, {"╺", "-"}, {"─", "-"},
    };

    for (size_t i = 0; i < ELEMENTS(pairs); i++)
        if (strlen(pairs[i][0]) == length && memcmp(pairs[i][0], character, length) == 0)
            return pairs[i][1];
    return "?";
}

static int character_width(const char *character, size_t length)
{
    wchar_t wide;
    int width;

    if (length == 1)
        return 1;
    if (mbrtowc(&wide, character, length, &(mbstate_t){0}) != length)
        return 1;
    width = wcwidth(wide);
    return width < 0 ? 1 : width;
}

unsigned terminal_text_width(const char *text)
{
    unsigned width = 0;

    for (size_t left = strlen(text); left > 0;) {
        size_t length = utf8_character(text, left);

        length = length == 0 ? 1 : length;
        if (!mark_sequence(*text))
            width += (unsigned)character_width(text, length);
        text += length;
        left -= length;
    }
    return width;
}

static void put_character(const struct terminal *terminal, const char *character, size_t length)
{
    if (length == 1 || terminal->utf8)
        fwrite(character, 1, length, terminal->file);
    else
        fputs(ascii_for(character, length), terminal->file);
}

/* Prints a line, cut at `limit` columns (0 = not cut), in the form that the terminal supports. */
static void put_line(const struct terminal *terminal, const char *text, unsigned limit)
{
    bool cut = limit > 0 && terminal_text_width(text) > limit, colored = false;
    unsigned used = 0;

    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        const char *sequence = mark_sequence(*text);
        unsigned width;

        length = utf8_character(text, left);
        length = length == 0 ? 1 : length;
        if (sequence) {
            colored = colored || terminal->colors;
            if (terminal->colors)
                fputs(sequence, terminal->file);
            continue;
        }
        width = (unsigned)character_width(text, length);
        if (cut && used + width >= limit) {
            put_character(terminal, "…", strlen("…"));
            break;
        }
        put_character(terminal, text, length);
        used += width;
    }
    if (colored)
        fputs(mark_sequence(*PLAIN), terminal->file);
}

__attribute__((format(printf, 3, 0))) static void put_formatted(const struct terminal *terminal,
                                                                unsigned limit, const char *format,
                                                                va_list arguments)
{
    _cleanup_free_ char *text = NULL;

    if (vasprintf(&text, format, arguments) < 0) {
        text = NULL;
        return;
    }
    put_line(terminal, text, limit);
}

void terminal_print(const struct terminal *terminal, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    put_formatted(terminal, terminal->width, format, arguments);
    va_end(arguments);
    fputc('\n', terminal->file);
}

void terminal_print_over(const struct terminal *terminal, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    put_formatted(terminal, terminal->width > 0 ? terminal->width - 1 : 0, format, arguments);
    va_end(arguments);
}

/* ---- complain ---- */

/* Longer messages are cut, because they may quote untrusted text. */
#define COMPLAINT_MAX 4096

/* Prints a text that may have several lines, like the reason of a job; indents all but the first.
 */
static void print_lines(const char *prefix, const char *text)
{
    size_t left = COMPLAINT_MAX;

    while (left > 0) {
        const size_t size = strcspn(text, "\n");
        _cleanup_free_ char *line = strndup(text, size < left ? size : left);
        char safe[COMPLAINT_MAX];

        fprintf(stderr, "%s%s\n", prefix, format_safe(safe, sizeof(safe), line ? line : ""));
        left -= size < left ? size : left;
        text += size;
        if (*text == '\0' || text[1] == '\0')
            return;
        text++;
        prefix = "  ";
    }
}

void complain_unknown(const char *nearest, const char *hint, const char *format, ...)
{
    const bool suggests = nearest && *nearest;
    _cleanup_free_ char *text = NULL, *whole = NULL;
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    if (asprintf(&whole, "%s%s%s%s", text ? text : format, suggests ? "; did you mean '" : hint,
                 suggests ? nearest : "", suggests ? "'?" : "") < 0)
        whole = NULL;
    print_lines("troupectl: ", whole ? whole : format);
}
