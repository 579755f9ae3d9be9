/* SPDX-License-Identifier: MIT */
#include "supervisor/calendar/calendar.h"

#include "supervisor/calendar/date.h"

#define USEC_PER_MINUTE (60 * USEC_PER_SEC)
#define USEC_PER_HOUR   (60 * USEC_PER_MINUTE)
#define USEC_PER_DAY    (24 * USEC_PER_HOUR)

/* The first member of the set from `from` on, or -1. */
static int next_bit(uint64_t set, unsigned from)
{
    set = from < 64 ? set >> from : 0;
    return set != 0 ? (int)from + __builtin_ctzll(set) : -1;
}

/* The days of a month that match, as bits 1 to 31. */
static uint64_t matching_days(const struct calendar *calendar, int year, int month)
{
    int length = date_month_length(year, month);
    int first = date_weekday(date_to_days((struct date){year, month, 1}));
    /* Six weeks, of which the first begins on the weekday of the month's first day. */
    uint64_t weeks = calendar->sets[CALENDAR_WEEKDAYS] * UINT64_C(0x810204081) >> first;
    uint64_t weekdays = weeks << 1;
    uint64_t days =
        calendar->sets[CALENDAR_DAYS] | calendar->sets[CALENDAR_DAYS_TO_LAST] >> (31 - length);
    uint64_t existing = (UINT64_C(2) << length) - 2;

    return (calendar->either_day ? days | weekdays : days & weekdays) & existing;
}

static bool matches_year(const struct calendar *calendar, int year)
{
    unsigned bit = (unsigned)(year - CALENDAR_YEAR_FIRST);

    return calendar->sets[CALENDAR_YEARS + bit / 64] >> bit % 64 & 1;
}

/* The first matching day from `day` on, in days since 1970; -1 if there is none. */
static int64_t next_day(const struct calendar *calendar, int64_t day)
{
    struct date date = date_of_days(day);
    uint64_t months = calendar->sets[CALENDAR_MONTHS];

    for (; date.year <= CALENDAR_YEAR_LAST; date.year++, date.month = 1, date.day = 1) {
        int month = matches_year(calendar, date.year) ? next_bit(months, (unsigned)date.month) : -1;

        for (; month > 0; month = next_bit(months, (unsigned)month + 1)) {
            unsigned first = month == date.month ? (unsigned)date.day : 1;
            int found = next_bit(matching_days(calendar, date.year, month), first);

            if (found > 0)
                return date_to_days((struct date){date.year, month, found});
        }
    }
    return -1;
}

/* The first matching microsecond of a minute from `from` on; USEC_PER_MINUTE if there is none. */
static usec_t next_second(const struct calendar *calendar, usec_t from)
{
    usec_t first = USEC_PER_MINUTE;

    for (unsigned i = 0; i < calendar->n_seconds; i++) {
        const struct calendar_range *range = &calendar->seconds[i];
        usec_t at = range->start;

        if (from > at)
            at += (from - at + range->step - 1) / range->step * range->step;
        if (at <= range->stop && at < first)
            first = at;
    }
    return first;
}

/* The first matching time of day from `from` on, in microseconds; USEC_PER_DAY if there is none. */
static usec_t next_time(const struct calendar *calendar, usec_t from)
{
    const uint64_t *sets = calendar->sets;
    int hour = next_bit(sets[CALENDAR_HOURS], (unsigned)(from / USEC_PER_HOUR));

    for (; hour >= 0; hour = next_bit(sets[CALENDAR_HOURS], (unsigned)hour + 1)) {
        usec_t start = (usec_t)hour * USEC_PER_HOUR;
        usec_t minutes = usec_sub(from, start) / USEC_PER_MINUTE;
        int minute = next_bit(sets[CALENDAR_MINUTES], (unsigned)minutes);

        for (; minute >= 0; minute = next_bit(sets[CALENDAR_MINUTES], (unsigned)minute + 1)) {
            usec_t time = start + (usec_t)minute * USEC_PER_MINUTE;
            usec_t second = next_second(calendar, usec_sub(from, time));

            if (second < USEC_PER_MINUTE)
                return time + second;
        }
    }
    return USEC_PER_DAY;
}

/* Sets `*wall` to the first matching wall time from `*wall` on. Returns whether there is one. */
static bool next_wall(const struct calendar *calendar, usec_t *wall)
{
    int64_t first = (int64_t)(*wall / USEC_PER_DAY);
    int64_t day = next_day(calendar, first);
    usec_t from = day == first ? *wall % USEC_PER_DAY : 0;
    usec_t time = next_time(calendar, from);

    if (day >= 0 && time == USEC_PER_DAY) {
        day = next_day(calendar, day + 1);
        time = next_time(calendar, 0);
    }
    *wall = (usec_t)day * USEC_PER_DAY + time;
    return day >= 0;
}

int calendar_next(const struct calendar *calendar, usec_t after, usec_t *ret)
{
    usec_t wall, end = (usec_t)date_of_year(CALENDAR_YEAR_LAST + 1) * USEC_PER_DAY;
    int64_t first, instant;

    if (after > end)
        return CALENDAR_E_END;
    first = zone_wall(calendar->zone, (int64_t)after + 1);
    /* West of Greenwich, the clock still shows 1969 when time begins. */
    wall = first < 0 ? 0 : (usec_t)first;
    while (next_wall(calendar, &wall)) {
        if (zone_instant(calendar->zone, (int64_t)wall, &instant)) {
            *ret = (usec_t)instant;
            return 0;
        }
        wall = (usec_t)instant;
    }
    return CALENDAR_E_END;
}
