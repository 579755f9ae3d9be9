/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/text/complain.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/format.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Longer messages are cut, because they may quote untrusted text. */
#define COMPLAINT_MAX 4096

__attribute__((format(printf, 1, 0))) static char *format_text(const char *format,
                                                               va_list arguments)
{
    char *text;

    return vasprintf(&text, format, arguments) < 0 ? NULL : text;
}

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

void complain(const char *format, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    text = format_text(format, arguments);
    va_end(arguments);
    print_lines("troupectl: ", text ? text : format);
}

void complain_unknown(const char *nearest, const char *hint, const char *format, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    text = format_text(format, arguments);
    va_end(arguments);
    if (nearest && *nearest)
        complain("%s; did you mean '%s'?", text ? text : format, nearest);
    else
        complain("%s%s", text ? text : format, hint);
}
