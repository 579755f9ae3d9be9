/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/text/format.h"

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SECONDS_PER_MINUTE 60u
#define SECONDS_PER_HOUR   3600u
#define SECONDS_PER_DAY    86400u

static char *two_units(char *buffer, size_t size, uint64_t major, const char *major_unit,
                       uint64_t minor, const char *minor_unit)
{
    if (minor > 0)
        snprintf(buffer, size, "%" PRIu64 "%s %" PRIu64 "%s", major, major_unit, minor, minor_unit);
    else
        snprintf(buffer, size, "%" PRIu64 "%s", major, major_unit);
    return buffer;
}

static char *format_short_span(char *buffer, size_t size, usec_t span)
{
    if (span == 0)
        snprintf(buffer, size, "0s");
    else if (span < USEC_PER_MSEC)
        snprintf(buffer, size, "%" PRIu64 "us", span);
    else if (span < USEC_PER_SEC)
        snprintf(buffer, size, "%" PRIu64 "ms", span / USEC_PER_MSEC);
    else
        snprintf(buffer, size, "%" PRIu64 ".%" PRIu64 "s", span / USEC_PER_SEC,
                 span % USEC_PER_SEC / (USEC_PER_SEC / 10));
    return buffer;
}

char *format_span(char *buffer, size_t size, usec_t span)
{
    uint64_t seconds = span / USEC_PER_SEC;

    /* The largest JSON integer, INT64_MAX, also means infinity. */
    if (span >= INT64_MAX) {
        snprintf(buffer, size, "infinity");
        return buffer;
    }
    if (seconds < 10)
        return format_short_span(buffer, size, span);
    if (seconds < SECONDS_PER_MINUTE)
        return two_units(buffer, size, seconds, "s", 0, "");
    if (seconds < SECONDS_PER_HOUR)
        return two_units(buffer, size, seconds / SECONDS_PER_MINUTE, "min",
                         seconds % SECONDS_PER_MINUTE, "s");
    if (seconds < SECONDS_PER_DAY)
        return two_units(buffer, size, seconds / SECONDS_PER_HOUR, "h",
                         seconds % SECONDS_PER_HOUR / SECONDS_PER_MINUTE, "min");
    return two_units(buffer, size, seconds / SECONDS_PER_DAY, "d",
                     seconds % SECONDS_PER_DAY / SECONDS_PER_HOUR, "h");
}

char *format_ago(char *buffer, size_t size, usec_t now, usec_t at)
{
    if (usec_sub(now, at) < USEC_PER_SEC)
        snprintf(buffer, size, "now");
    else
        snprintf(buffer, size, "%s ago", SPAN(now - at));
    return buffer;
}

char *format_bytes(char *buffer, size_t size, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes / 1024;
    size_t unit = 0;

    if (bytes < 1024) {
        snprintf(buffer, size, "%" PRIu64 " B", bytes);
        return buffer;
    }
    while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    snprintf(buffer, size, "%.1f %s", value, units[unit]);
    return buffer;
}

char *format_count(char *buffer, size_t size, uint64_t count)
{
    char digits[32];
    size_t n = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count), used = 0;

    for (size_t i = 0; i < n && used + 2 < size; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            buffer[used++] = ',';
        buffer[used++] = digits[i];
    }
    buffer[used] = '\0';
    return buffer;
}

/* All zero for a time that is out of range. */
static struct tm local_time(usec_t at)
{
    time_t seconds = (time_t)(at / USEC_PER_SEC);
    struct tm local = {0};

    (void)localtime_r(&seconds, &local);
    return local;
}

char *format_time(char *buffer, size_t size, usec_t at)
{
    const struct tm local = local_time(at);

    (void)strftime(buffer, size, "%a %Y-%m-%d %H:%M:%S %Z", &local);
    return buffer;
}

char *format_time_of_day(char *buffer, size_t size, usec_t at)
{
    const struct tm local = local_time(at);
    size_t used = strftime(buffer, size, "%b %d %H:%M:%S", &local);

    snprintf(buffer + used, size - used, ".%03u", (unsigned)(at % USEC_PER_SEC / USEC_PER_MSEC));
    return buffer;
}

char *format_clock(char *buffer, size_t size, usec_t now, usec_t at)
{
    const struct tm local = local_time(at), today = local_time(now);
    bool same_day = local.tm_year == today.tm_year && local.tm_yday == today.tm_yday;

    (void)strftime(buffer, size, same_day ? "%H:%M" : "%Y-%m-%d %H:%M", &local);
    return buffer;
}

char *format_safe(char *buffer, size_t size, const char *text)
{
    static const char cut[] = "…";
    const unsigned char *at = (const unsigned char *)text;
    size_t left = strlen(text), used = 0;

    while (left > 0) {
        size_t length = utf8_character(at, left);
        char escape[UTF8_ESCAPE_SIZE];
        const void *piece = at;
        size_t piece_size = length;

        if (*at == '\t') {
            piece = " ";
        } else if (utf8_printable(at, left) == 0) {
            piece_size = length > 0 ? utf8_escape_character(escape, at, length)
                                    : (size_t)snprintf(escape, sizeof(escape), "\\x%02x", *at);
            piece = escape;
            length = length > 0 ? length : 1;
        }
        if (used + piece_size + sizeof(cut) > size) {
            memcpy(buffer + used, cut, sizeof(cut));
            return buffer;
        }
        memcpy(buffer + used, piece, piece_size);
        used += piece_size;
        at += length;
        left -= length;
    }
    buffer[used] = '\0';
    return buffer;
}

char *format_first_line(char *buffer, size_t size, const char *text)
{
    static const char more[] = " …";
    const size_t length = strcspn(text, "\n");
    _cleanup_free_ char *line = strndup(text, length);

    format_safe(buffer, size - sizeof(more), line ? line : "");
    if (text[length] != '\0' && text[length + 1] != '\0')
        strcat(buffer, more);
    return buffer;
}

char *format_last_line(char *buffer, size_t size, const char *text)
{
    size_t end = strlen(text), start;
    _cleanup_free_ char *line = NULL;

    if (end > 0 && text[end - 1] == '\n')
        end--;
    for (start = end; start > 0 && text[start - 1] != '\n';)
        start--;
    line = strndup(text + start, end - start);
    return format_safe(buffer, size, line ? line : "");
}

const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}
