/* SPDX-License-Identifier: MIT */

/* Lists of processors, as systemd and the kernel write them. */

#include "supervisor/config/syntax/values.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS " \t\r\n\v\f,"

static int take_number(const char **text, unsigned *ret)
{
    const size_t length = strspn(*text, "0123456789");
    unsigned long number = strtoul(*text, NULL, 10);

    if (length == 0)
        return VALUES_E_INVALID;
    if (number > VALUES_CPU_MAX)
        return VALUES_E_RANGE;
    *text += length;
    *ret = (unsigned)number;
    return 0;
}

/* "3" or "0-3". */
static int take_range(const char **text)
{
    unsigned first = 0, last;
    int r = take_number(text, &first);

    last = first;
    if (r == 0 && **text == '-') {
        (*text)++;
        r = take_number(text, &last);
    }
    if (r != 0)
        return r;
    return last < first || (**text != '\0' && !strchr(SEPARATORS, **text)) ? VALUES_E_INVALID : 0;
}

int values_cpus(const char *text, char **list)
{
    const size_t before = *list ? strlen(*list) : 0;
    _cleanup_free_ char *joined = malloc(before + strlen(text) + 2);
    char *to = joined;
    int r = 0;

    text += strspn(text, SEPARATORS);
    if (*text == '\0')
        return VALUES_E_INVALID;
    if (!joined)
        return -ENOMEM;
    if (*list)
        to = stpcpy(to, *list);
    for (const char *end = text; *text != '\0'; text = end += strspn(end, SEPARATORS)) {
        r = take_range(&end);
        if (r != 0)
            return r;
        if (to != joined)
            *to++ = ',';
        to = mempcpy(to, text, (size_t)(end - text));
    }
    *to = '\0';
    free(*list);
    *list = TAKE_PTR(joined);
    return 0;
}
