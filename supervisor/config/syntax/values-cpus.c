/* SPDX-License-Identifier: MIT */

/* Lists of processors, as systemd and the kernel write them. */

#include "supervisor/config/syntax/values.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS " \t\r\n\v\f,"
#define N_CPUS     (VALUES_CPU_MAX + 1)

struct cpus {
    bool has[N_CPUS];
};

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
static int take_range(const char **text, struct cpus *cpus)
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
    if (last < first || (**text != '\0' && !strchr(SEPARATORS, **text)))
        return VALUES_E_INVALID;
    memset(&cpus->has[first], true, last - first + 1);
    return 0;
}

static int add(struct cpus *cpus, const char *text)
{
    int r = 0;

    text += strspn(text, SEPARATORS);
    if (*text == '\0')
        return VALUES_E_INVALID;
    for (; r == 0 && *text != '\0'; text += strspn(text, SEPARATORS))
        r = take_range(&text, cpus);
    return r;
}

static void write_ranges(FILE *file, const struct cpus *cpus)
{
    const char *comma = "";

    for (unsigned first = 0; first < N_CPUS; first++) {
        unsigned last = first;

        if (!cpus->has[first])
            continue;
        while (last + 1 < N_CPUS && cpus->has[last + 1])
            last++;
        fprintf(file, "%s%u", comma, first);
        if (last > first)
            fprintf(file, "-%u", last);
        comma = ",";
        first = last;
    }
}

static int to_text(const struct cpus *cpus, char **ret)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (!file)
        return -ENOMEM;
    write_ranges(file, cpus);
    if (fclose(file) != 0) {
        free(text);
        return -ENOMEM;
    }
    *ret = text;
    return 0;
}

int values_cpus(const char *text, char **list)
{
    struct cpus cpus = {0};
    char *merged;
    int r = add(&cpus, text);

    if (r == 0 && *list)
        r = add(&cpus, *list);
    if (r == 0)
        r = to_text(&cpus, &merged);
    if (r != 0)
        return r;
    free(*list);
    *list = merged;
    return 0;
}
