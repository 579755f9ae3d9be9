/* SPDX-License-Identifier: MIT */
#include "value.h"

#include "../../shared/cleanup.h"
#include <string.h>

struct unit {
    const char *name;
    usec_t usec;
};

static const struct unit units[] = {
    {"us", 1},
    {"usec", 1},
    {"ms", USEC_PER_MSEC},
    {"msec", USEC_PER_MSEC},
    {"s", USEC_PER_SEC},
    {"sec", USEC_PER_SEC},
    {"second", USEC_PER_SEC},
    {"seconds", USEC_PER_SEC},
    {"m", 60 * USEC_PER_SEC},
    {"min", 60 * USEC_PER_SEC},
    {"minute", 60 * USEC_PER_SEC},
    {"minutes", 60 * USEC_PER_SEC},
    {"h", 3600 * USEC_PER_SEC},
    {"hr", 3600 * USEC_PER_SEC},
    {"hour", 3600 * USEC_PER_SEC},
    {"hours", 3600 * USEC_PER_SEC},
    {"d", 86400 * USEC_PER_SEC},
    {"day", 86400 * USEC_PER_SEC},
    {"days", 86400 * USEC_PER_SEC},
    {"w", 7 * (86400 * USEC_PER_SEC)},
    {"week", 7 * (86400 * USEC_PER_SEC)},
    {"weeks", 7 * (86400 * USEC_PER_SEC)},
};

static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

/* 0 if there is no such unit. */
static usec_t unit_usec(const char *name, size_t length)
{
    for (size_t i = 0; i < ELEMENTS(units); i++)
        if (strlen(units[i].name) == length && memcmp(units[i].name, name, length) == 0)
            return units[i].usec;
    return 0;
}

/* "1.5h" and what follows it; moves `*text` behind. */
static int take_part(const char **text, double *total)
{
    size_t digits = strspn(*text, "0123456789."), length;
    double value;
    usec_t unit;
    char *end;

    if (digits == 0)
        return -EINVAL;
    value = strtod(*text, &end);
    if (end != *text + digits)
        return -EINVAL;
    end += strspn(end, " ");
    length = strspn(end, letters);
    unit = length == 0 ? USEC_PER_SEC : unit_usec(end, length);
    if (unit == 0)
        return -EINVAL;
    *total += value * (double)unit;
    *text = end + length;
    *text += strspn(*text, " ");
    return 0;
}

int value_span(const char *text, usec_t *ret)
{
    double total = 0;

    text += strspn(text, " ");
    if (strcmp(text, "infinity") == 0) {
        *ret = USEC_INFINITY;
        return 0;
    }
    do {
        if (take_part(&text, &total) < 0)
            return -EINVAL;
    } while (*text != '\0');
    if (total >= (double)INT64_MAX)
        return -EINVAL;
    *ret = (usec_t)(total + 0.5);
    return 0;
}

int value_span_range(const char *text, usec_t *ret_min, usec_t *ret_max)
{
    const char *dots = strstr(text, "..");
    char first[64];
    size_t length = dots ? (size_t)(dots - text) : strlen(text);
    usec_t min, max;

    if (length >= sizeof(first))
        return -EINVAL;
    memcpy(first, text, length);
    first[length] = '\0';
    if (value_span(first, &min) < 0)
        return -EINVAL;
    max = min;
    if (dots && value_span(dots + 2, &max) < 0)
        return -EINVAL;
    if (max < min)
        return -EINVAL;
    *ret_min = min;
    *ret_max = max;
    return 0;
}

int value_number(const char *text, int64_t minimum, int64_t maximum, int64_t *ret)
{
    long long value;
    char *end;

    if (*text == '\0' || *text == ' ')
        return -EINVAL;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < minimum || value > maximum)
        return -EINVAL;
    *ret = value;
    return 0;
}
