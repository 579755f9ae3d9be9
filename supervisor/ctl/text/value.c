/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/text/value.h"

#include "supervisor/config/syntax/values.h"
#include <errno.h>
#include <string.h>
#include <time.h>

int value_span(const char *text, usec_t *ret)
{
    usec_t span;

    /* Spans become JSON integers, in which -1 stands for infinity. */
    if (values_time(text, &span) != 0 || (span > INT64_MAX && span != USEC_INFINITY))
        return -EINVAL;
    *ret = span;
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

/* Whether the whole text has this format; clears `*ret` first. */
static bool parse_time(const char *text, const char *format, struct tm *ret)
{
    const char *end;

    *ret = (struct tm){0};
    end = strptime(text, format, ret);
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

/* The next time that the local clock shows this time of day. */
static int take_time_of_day(const struct tm *time, usec_t now, usec_t *ret)
{
    const time_t seconds = (time_t)(now / USEC_PER_SEC);
    struct tm today;

    if (!localtime_r(&seconds, &today))
        return -EINVAL;
    for (int days = 0; days <= 1; days++) {
        struct tm copy = *time;

        copy.tm_year = today.tm_year;
        copy.tm_mon = today.tm_mon;
        copy.tm_mday = today.tm_mday + days;
        copy.tm_isdst = -1;
        *ret = (usec_t)mktime(&copy) * USEC_PER_SEC;
        if (*ret > now)
            break;
    }
    return 0;
}

int value_date(const char *text, usec_t now, usec_t *ret)
{
    struct tm time;
    int64_t since;

    if (*text == '@') {
        if (value_number(text + 1, 1, INT64_MAX / (int64_t)USEC_PER_SEC, &since) < 0)
            return -EINVAL;
        *ret = (usec_t)since * USEC_PER_SEC;
        return 0;
    }
    if (parse_time(text, "%Y-%m-%d %H:%M:%S", &time) || parse_time(text, "%Y-%m-%d %H:%M", &time))
        return take_time(&time, ret);
    if (parse_time(text, "%H:%M:%S", &time) || parse_time(text, "%H:%M", &time))
        return take_time_of_day(&time, now, ret);
    return -EINVAL;
}

int value_slot(const char *text, usec_t now, usec_t *ret)
{
    const char *at = *text == '@' ? NULL : strrchr(text, '@');
    struct tm time;

    if (parse_time(at ? at + 1 : text, "%Y-%m-%dT%H:%M:%SZ", &time)) {
        *ret = (usec_t)timegm(&time) * USEC_PER_SEC;
        return 0;
    }
    return parse_time(text, "%Y-%m-%d", &time) ? take_time(&time, ret) : value_date(text, now, ret);
}

int value_number(const char *text, int64_t minimum, int64_t maximum, int64_t *ret)
{
    int64_t value;

    if (values_integer(text, &value) != 0 || value < minimum || value > maximum)
        return -EINVAL;
    *ret = value;
    return 0;
}
