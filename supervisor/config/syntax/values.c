/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/values.h"

#include "supervisor/calendar/calendar.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SPACE " \t\r\n\v\f"

/* A unit and its factor. */
struct unit {
    const char *name;
    uint64_t factor;
};

#define SECOND USEC_PER_SEC
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* clang-format off */
/* Month and year as in systemd.time(7): 30.44 and 365.25 days. */
static const struct unit TIME_UNITS[] = {
    {"us", 1}, {"usec", 1}, {"µs", 1}, {"μs", 1},
    {"ms", USEC_PER_MSEC}, {"msec", USEC_PER_MSEC},
    {"", SECOND}, {"s", SECOND}, {"sec", SECOND}, {"second", SECOND}, {"seconds", SECOND},
    {"m", MINUTE}, {"min", MINUTE}, {"minute", MINUTE}, {"minutes", MINUTE},
    {"h", HOUR}, {"hr", HOUR}, {"hour", HOUR}, {"hours", HOUR},
    {"d", DAY}, {"day", DAY}, {"days", DAY},
    {"w", 7 * DAY}, {"week", 7 * DAY}, {"weeks", 7 * DAY},
    {"M", 2629800 * SECOND}, {"month", 2629800 * SECOND}, {"months", 2629800 * SECOND},
    {"y", 31557600 * SECOND}, {"year", 31557600 * SECOND}, {"years", 31557600 * SECOND},
    {NULL, 0},
};

static const struct unit SIZE_UNITS[] = {
    {"", 1}, {"B", 1}, {"K", UINT64_C(1) << 10}, {"M", UINT64_C(1) << 20}, {"G", UINT64_C(1) << 30},
    {"T", UINT64_C(1) << 40}, {"P", UINT64_C(1) << 50}, {"E", UINT64_C(1) << 60},
    {NULL, 0},
};
/* clang-format on */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_space(const char *text)
{
    return text + strspn(text, SPACE);
}

/* Whether nothing but white space is left. */
static bool at_end(const char *text)
{
    return *skip_space(text) == '\0';
}

/* Whether the whole text is this word. */
static bool is_word(const char *text, const char *word)
{
    text = skip_space(text);
    return strncmp(text, word, strlen(word)) == 0 && at_end(text + strlen(word));
}

/* The digits at `*at`, which moves behind them. */
static int take_digits(const char **at, uint64_t *ret)
{
    uint64_t value = 0;

    if (!is_digit(**at))
        return VALUES_E_INVALID;
    for (; is_digit(**at); (*at)++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(**at - '0'), &value))
            return VALUES_E_RANGE;
    *ret = value;
    return 0;
}

/* The decimals ".25" as a share of `factor`. Digits below 10⁻⁹ are ignored. */
static uint64_t take_decimals(const char **at, uint64_t factor)
{
    uint64_t numerator = 0, denominator = 1;

    for (; is_digit(**at); (*at)++)
        if (denominator < 1000000000) {
            numerator = numerator * 10 + (uint64_t)(**at - '0');
            denominator *= 10;
        }
    return (uint64_t)((unsigned __int128)factor * numerator / denominator);
}

static const struct unit *find_unit(const struct unit *units, const char *name, size_t size)
{
    for (; units->name; units++)
        if (strlen(units->name) == size && memcmp(units->name, name, size) == 0)
            return units;
    return NULL;
}

/* One "1.5h" at `*at`, which moves behind it. */
static int take_quantity(const char **at, const struct unit *units, uint64_t *ret)
{
    const struct unit *unit;
    const char *decimals = NULL, *name;
    uint64_t whole = 0;
    size_t name_size;
    int r = take_digits(at, &whole);

    if (r != 0)
        return r;
    if (**at == '.') {
        decimals = ++*at;
        *at += strspn(*at, "0123456789");
        if (*at == decimals)
            return VALUES_E_INVALID;
    }
    name = skip_space(*at);
    name_size = strcspn(name, SPACE "0123456789.");
    unit = find_unit(units, name, name_size);
    if (!unit)
        return VALUES_E_INVALID;
    /* "1 2" is one second and two more, "1 min" one minute. */
    *at = name_size > 0 ? name + name_size : *at;
    if (__builtin_mul_overflow(whole, unit->factor, ret))
        return VALUES_E_RANGE;
    if (decimals && __builtin_add_overflow(*ret, take_decimals(&decimals, unit->factor), ret))
        return VALUES_E_RANGE;
    return 0;
}

/* A sum of quantities, or "infinity". */
static int take_sum(const char *text, const struct unit *units, uint64_t *ret)
{
    uint64_t sum = 0, part;
    int r;

    if (is_word(text, "infinity")) {
        *ret = UINT64_MAX;
        return 0;
    }
    text = skip_space(text);
    do {
        r = take_quantity(&text, units, &part);
        if (r != 0)
            return r;
        /* The largest value means infinity. */
        if (__builtin_add_overflow(sum, part, &sum) || sum == UINT64_MAX)
            return VALUES_E_RANGE;
        text = skip_space(text);
    } while (*text != '\0');
    *ret = sum;
    return 0;
}

int values_time(const char *text, usec_t *ret)
{
    return take_sum(text, TIME_UNITS, ret);
}

int values_size(const char *text, uint64_t *ret)
{
    return take_sum(text, SIZE_UNITS, ret);
}

int values_count(const char *text, uint64_t *ret)
{
    uint64_t value;
    int r;

    if (is_word(text, "infinity")) {
        *ret = UINT64_MAX;
        return 0;
    }
    text = skip_space(text);
    r = take_digits(&text, &value);
    if (r != 0)
        return r;
    if (!at_end(text))
        return VALUES_E_INVALID;
    if (value == UINT64_MAX)
        return VALUES_E_RANGE;
    *ret = value;
    return 0;
}

int values_integer(const char *text, int64_t *ret)
{
    bool negative;
    uint64_t value;
    int r;

    text = skip_space(text);
    negative = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    r = take_digits(&text, &value);
    if (r != 0)
        return r;
    if (!at_end(text))
        return VALUES_E_INVALID;
    if (value > INT64_MAX)
        return VALUES_E_RANGE;
    *ret = negative ? -(int64_t)value : (int64_t)value;
    return 0;
}

int values_percent(const char *text, uint64_t *ret)
{
    uint64_t value;
    int r;

    text = skip_space(text);
    r = take_digits(&text, &value);
    if (r != 0)
        return r;
    if (*text != '%' || !at_end(text + 1))
        return VALUES_E_INVALID;
    *ret = value;
    return 0;
}

int values_fraction(const char *text, double *ret)
{
    uint64_t whole = 0;
    double value;
    int r;

    text = skip_space(text);
    r = take_digits(&text, &whole);
    if (r != 0)
        return r;
    value = (double)whole;
    if (*text == '.') {
        const char *decimals = ++text;

        value += (double)take_decimals(&text, 1000000000) / 1e9;
        if (text == decimals)
            return VALUES_E_INVALID;
    }
    if (*text == '%') {
        value /= 100;
        text++;
    }
    if (!at_end(text))
        return VALUES_E_INVALID;
    *ret = value;
    return 0;
}

/* "RTMIN", "RTMIN+3", "RTMAX-1". */
static int real_time_signal(const char *text, int *ret)
{
    bool from_below = strncmp(text, "RTMIN", 5) == 0;
    uint64_t offset = 0;

    if (!from_below && strncmp(text, "RTMAX", 5) != 0)
        return VALUES_E_INVALID;
    text += 5;
    if (*text == (from_below ? '+' : '-')) {
        text++;
        if (take_digits(&text, &offset) != 0)
            return VALUES_E_INVALID;
    }
    if (!at_end(text))
        return VALUES_E_INVALID;
    if (offset > (uint64_t)(SIGRTMAX - SIGRTMIN))
        return VALUES_E_RANGE;
    *ret = from_below ? SIGRTMIN + (int)offset : SIGRTMAX - (int)offset;
    return 0;
}

int values_signal(const char *text, int *ret)
{
    uint64_t number;

    text = skip_space(text);
    if (is_digit(*text)) {
        if (take_digits(&text, &number) != 0 || !at_end(text))
            return VALUES_E_INVALID;
        if (number < 1 || number > (uint64_t)SIGRTMAX)
            return VALUES_E_RANGE;
        *ret = (int)number;
        return 0;
    }
    if (strncmp(text, "SIG", 3) == 0)
        text += 3;
    for (int i = 1; i < SIGRTMIN; i++) {
        const char *name = sigabbrev_np(i);

        if (name && is_word(text, name)) {
            *ret = i;
            return 0;
        }
    }
    return real_time_signal(text, ret);
}

#define PERCENT_MAX 1000u

/* The processors that this process may use; all online ones if a cpu_set_t is too small. */
static uint64_t count_processors(void)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return (uint64_t)CPU_COUNT(&set);
    return online > 0 ? (uint64_t)online : 1;
}

int values_workers(const char *text, uint64_t *ret)
{
    uint64_t percent, number;
    int r = values_percent(text, &percent);

    if (r == VALUES_E_INVALID)
        return values_count(text, ret);
    if (r != 0 || percent == 0 || percent > PERCENT_MAX)
        return VALUES_E_RANGE;
    number = count_processors() * percent / 100;
    *ret = number > 0 ? number : 1;
    return 0;
}

int values_workers_range(const char *text, uint64_t *ret_low, uint64_t *ret_high)
{
    const char *dots = strstr(text, "..");
    char low[24] = "";
    int r;

    if (!dots) {
        r = values_workers(text, ret_low);
        *ret_high = *ret_low;
        return r;
    }
    if ((size_t)(dots - text) >= sizeof(low))
        return VALUES_E_INVALID;
    memcpy(low, text, (size_t)(dots - text));
    r = values_workers(low, ret_low);
    if (r != 0 || strcmp(dots + 2, "auto") != 0)
        return r != 0 ? r : values_workers(dots + 2, ret_high);
    *ret_high = count_processors();
    if (*ret_high < *ret_low)
        *ret_high = *ret_low;
    return 0;
}

int values_calendar(const char *text, unsigned *ret_moments, const char **ret_reason)
{
    static char reason[sizeof(((struct calendar_error *)NULL)->text) + 32];
    struct zones zones = ZONES_NULL;
    struct calendar_error error = {.text = "the time zone cannot be read"};
    struct calendar calendar;
    usec_t slot = 0;
    int r = calendar_parse(text, &zones, &calendar, &error);

    *ret_moments = 0;
    while (r == 0 && *ret_moments < 2 && calendar_next(&calendar, slot, &slot) == 0)
        ++*ret_moments;
    zones_deinit(&zones);
    if (r == 0 || r == -ENOMEM)
        return r;
    (void)snprintf(reason, sizeof(reason), "column %u: %s", error.column, error.text);
    *ret_reason = reason;
    return VALUES_E_INVALID;
}
