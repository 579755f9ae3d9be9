/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/text/value.h"

#include "shared/base/cleanup.h"
#include <string.h>
#include <time.h>

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

/* Returns 0 if there is no such unit. */
static usec_t unit_usec(const char *name, size_t length)
{
    for (size_t i = 0; i < ELEMENTS(units); i++)
        if (strlen(units[i].name) == length && memcmp(units[i].name, name, length) == 0)
            return units[i].usec;
    return 0;
}

/* Parses one part such as "1.5h" and moves `*text` behind it. */
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

static bool parse_time(const char *text, const char *format, struct tm *ret)
{
    const char *end = strptime(text, format, ret);

    return end && *end == '\0';
}

static int take_time(const struct tm *time, usec_t *ret)
{
    struct tm copy = *time;
    time_t seconds;

    copy.tm_isdst = -1;
    seconds = mktime(&copy);
    /* mktime() turns the 31st of April into the 1st of May: refuse that. */
    if (seconds < 0 || copy.tm_mday != time->tm_mday || copy.tm_mon != time->tm_mon)
        return -EINVAL;
    *ret = (usec_t)seconds * USEC_PER_SEC;
    return 0;
}

int value_date(const char *text, usec_t now, usec_t *ret)
{
    const time_t seconds = (time_t)(now / USEC_PER_SEC);
    struct tm today, time = {0};
    int64_t since;

    if (*text == '@') {
        if (value_number(text + 1, 1, INT64_MAX / (int64_t)USEC_PER_SEC, &since) < 0)
            return -EINVAL;
        *ret = (usec_t)since * USEC_PER_SEC;
        return 0;
    }
    if (parse_time(text, "%Y-%m-%d %H:%M:%S", &time))
        return take_time(&time, ret);
    time = (struct tm){0};
    if (parse_time(text, "%Y-%m-%d %H:%M", &time))
        return take_time(&time, ret);
    time = (struct tm){0};
    if (!localtime_r(&seconds, &today) ||
        !(parse_time(text, "%H:%M:%S", &time) || parse_time(text, "%H:%M", &time)))
        return -EINVAL;
    today.tm_hour = time.tm_hour;
    today.tm_min = time.tm_min;
    today.tm_sec = time.tm_sec;
    if (take_time(&today, ret) < 0)
        return -EINVAL;
    if (*ret > now)
        return 0;
    today.tm_mday++;
    today.tm_isdst = -1;
    *ret = (usec_t)mktime(&today) * USEC_PER_SEC;
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
