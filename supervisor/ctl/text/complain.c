/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/text/complain.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/format.h"
#include <stdarg.h>
#include <stdio.h>

/* Longer messages are cut, because they may quote untrusted text. */
#define COMPLAINT_MAX 4096

__attribute__((format(printf, 1, 0))) static char *format_text(const char *format,
                                                               va_list arguments)
{
    char *text;

    return vasprintf(&text, format, arguments) < 0 ? NULL : text;
}

void complain(const char *format, ...)
{
    _cleanup_free_ char *text = NULL;
    char safe[COMPLAINT_MAX];
    va_list arguments;

    va_start(arguments, format);
    text = format_text(format, arguments);
    va_end(arguments);
    fprintf(stderr, "troupectl: %s\n", format_safe(safe, sizeof(safe), text ? text : format));
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
