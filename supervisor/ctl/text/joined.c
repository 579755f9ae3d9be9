/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/text/joined.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void joined_add(struct joined *joined, const char *format, ...)
{
    const char *separator = joined->size > 0 ? joined->separator : "";
    char *end = joined->text + joined->size;
    const size_t left = sizeof(joined->text) - joined->size, gap = strlen(separator);
    va_list arguments;
    int length = -1;

    if (gap < left) {
        memcpy(end, separator, gap);
        va_start(arguments, format);
        length = vsnprintf(end + gap, left - gap, format, arguments);
        va_end(arguments);
    }
    if (length < 0 || (size_t)length >= left - gap) {
        *end = '\0';
        return;
    }
    joined->size += gap + (size_t)length;
    joined->separator = ", ";
}
