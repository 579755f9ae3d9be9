/* SPDX-License-Identifier: MIT */
#include "supervisor/calendar/calendar.h"

#include "supervisor/calendar/date.h"

#define USEC_PER_MINUTE ((uint32_t)(60 * USEC_PER_SEC))
#define USEC_PER_HOUR   (60 * (usec_t)USEC_PER_MINUTE)
#define USEC_PER_DAY    (24 * USEC_PER_HOUR)

/* ---- days ---- */

/* The days of a month that match, as bits 1 to 31. */
static uint32_t matching_days(const struct calendar *calendar, int year, int month)
{
    int length = date_month_length(year, month);
    int first = date_weekday(date_to_days((struct date){year, month, 1}));
    /* The week, repeated from 7 bits to 42, begins on the weekday of the month's first day. */
    uint64_t weeks = calendar->weekdays * UINT64_C(0x810204081);
    uint32_t weekdays = (uint32_t)(weeks >> first << 1);
    uint32_t days = calendar->days | calendar->days_to_last >> (31 - length);
    uint32_t existing = (uint32_t)((UINT64_C(2) << length) - 2);

    return (calendar->either_day ? days | weekdays : days & weekdays) & existing;
}

static bool matches_year(const struct calendar *calendar, int year)
{
    unsigned bit = (unsigned)(year - CALENDAR_YEAR_FIRST);

    return calendar->years[bit / 64] >> bit % 64 & 1;
}

/* The first matching day from `day` on, in days since 1970; -1 if there is none. */
static int64_t next_day(const struct calendar *calendar, int64_t day)
{
    struct date date = date_of_days(day);

    for (; date.year <= CALENDAR_YEAR_LAST; date.year++, date.month = 1, date.day = 1) {
        if (!matches_year(calendar, date.year))
            continue;
        for (; date.month <= 12; date.month++, date.day = 1) {
            uint32_t days;

            if (!(calendar->months >> date.month & 1))
                continue;
            days = matching_days(calendar, date.year, date.month) >> date.day;
            if (days != 0)
                return date_to_days(date) + __builtin_ctz(days);
        }
    }
    return -1;
}

/* ---- times of day ---- */

/* The first member of the set from `from` on, or -1. */
static int next_bit(uint64_t set, unsigned from)
{
    set = from < 64 ? set >> from : 0;
    return set != 0 ? (int)from + __builtin_ctzll(set) : -1;
}

/* The first matching microsecond of a minute from `from` on; USEC_PER_MINUTE if there is none. */
static uint32_t next_seconds(const struct calendar *calendar, uint32_t from)
{
    uint32_t first = USEC_PER_MINUTE;

    for (unsigned i = 0; i < calendar->n_seconds; i++) {
        const struct calendar_seconds *seconds = &calendar->seconds[i];
        uint32_t at = seconds->start;

        if (from > at)
            at += (from - at + seconds->step - 1) / seconds->step * seconds->step;
        if (at <= seconds->stop && at < first)
            first = at;
    }
    return first;
}

/* The first matching time in an hour from `from` on, in microseconds; USEC_PER_HOUR if there is
 * none. */
static usec_t next_in_hour(const struct calendar *calendar, usec_t from)
{
    unsigned minute = (unsigned)(from / USEC_PER_MINUTE);
    uint32_t seconds = USEC_PER_MINUTE;
    int next;

    if (calendar->minutes >> minute & 1)
        seconds = next_seconds(calendar, (uint32_t)(from % USEC_PER_MINUTE));
    if (seconds < USEC_PER_MINUTE)
        return (usec_t)minute * USEC_PER_MINUTE + seconds;
    next = next_bit(calendar->minutes, minute + 1);
    if (next < 0)
        return USEC_PER_HOUR;
    return (usec_t)next * USEC_PER_MINUTE + next_seconds(calendar, 0);
}

/* The first matching time of day from `from` on, in microseconds; USEC_PER_DAY if there is none. */
static usec_t next_in_day(const struct calendar *calendar, usec_t from)
{
    unsigned hour = (unsigned)(from / USEC_PER_HOUR);
    usec_t in_hour = USEC_PER_HOUR;
    int next;

    if (calendar->hours >> hour & 1)
        in_hour = next_in_hour(calendar, from % USEC_PER_HOUR);
    if (in_hour < USEC_PER_HOUR)
        return hour * USEC_PER_HOUR + in_hour;
    next = next_bit(calendar->hours, hour + 1);
    if (next < 0)
        return USEC_PER_DAY;
    return (usec_t)next * USEC_PER_HOUR + next_in_hour(calendar, 0);
}

/* ---- both ---- */

/* Sets `*wall` to the first matching wall time from `*wall` on. Returns whether there is one. */
static bool next_wall(const struct calendar *calendar, usec_t *wall)
{
    int64_t start = (int64_t)(*wall / USEC_PER_DAY);
    int64_t day = next_day(calendar, start);
    usec_t time = USEC_PER_DAY;

    if (day == start)
        time = next_in_day(calendar, *wall % USEC_PER_DAY);
    if (day == start && time == USEC_PER_DAY)
        day = next_day(calendar, start + 1);
    if (day < 0)
        return false;
    if (time == USEC_PER_DAY)
        time = next_in_day(calendar, 0);
    *wall = (usec_t)day * USEC_PER_DAY + time;
    return true;
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
