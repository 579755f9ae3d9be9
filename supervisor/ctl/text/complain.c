/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/text/complain.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/format.h"
#include <stdarg.h>
#include <stdio.h>

/* Longer messages are cut, because they may quote untrusted text. */
#define COMPLAINT_MAX 4096

__attribute__((format(printf, 2, 0))) static void
write_complaint(const char *nearest, const char *format, va_list arguments)
{
    _cleanup_free_ char *text = NULL;
    char safe[COMPLAINT_MAX];

    if (vasprintf(&text, format, arguments) < 0) {
        text = NULL;
        return;
    }
    format_safe(safe, sizeof(safe), text);
    if (nearest && *nearest)
        fprintf(stderr, "troupectl: %s; did you mean '%s'?\n", safe, nearest);
    else
        fprintf(stderr, "troupectl: %s\n", safe);
}

void complain(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_complaint(NULL, format, arguments);
    va_end(arguments);
}

void complain_nearest(const char *nearest, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_complaint(nearest, format, arguments);
    va_end(arguments);
}
