/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Calendar expressions: those of systemd.time(7), and the lines of crontab(5). Either may end with
 * a time zone ("UTC", "Europe/Berlin"); without one it means the local zone.
 *
 *   Mon..Fri *-*-* 09:00 America/New_York        the working days at nine
 *   Fri *-*~07/1 18:00                           the last Friday of the month
 *   quarterly UTC                                one of the words, in any case
 *   0 9 * * MON-FRI America/New_York             minute hour day-of-month month day-of-week
 *   @weekly                                      a word of cron: Sunday at midnight
 *
 * In a cron line that restricts both kinds of days, a day of either kind matches. Neither field
 * restricts if it begins with an asterisk, as in cron(8).
 *
 * A slot is an instant at which the zone's clocks show a matching time for the first time. So a
 * time that the clocks skip has no slot, and a time that they repeat has one.
 * "systemd-analyze calendar" prints the same slots, unless its base time is inside a repeated hour:
 * it repeats slots then.
 */

#include "shared/base/clock.h"
#include "supervisor/calendar/zone.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    _CALENDAR_E_SUCCESS,
    CALENDAR_E_INVALID, /* the expression; struct calendar_error says why */
    CALENDAR_E_END,     /* there is no later slot */
};

#define CALENDAR_YEAR_FIRST  1970
#define CALENDAR_YEAR_LAST   2199
#define CALENDAR_SECONDS_MAX 60 /* elements in the list of seconds */

/* Where an expression is wrong, and what is allowed there. */
struct calendar_error {
    unsigned column; /* of the expression, in bytes from 1 */
    char text[160];  /* a clause in ASCII: "the hour must be 0 to 23" */
};

/* start, start + step, … up to stop. */
struct calendar_range {
    uint32_t start, stop, step;
};

enum calendar_set {
    CALENDAR_YEARS,        /* bit 0 is CALENDAR_YEAR_FIRST; continues in three more words */
    CALENDAR_MONTHS = 4,   /* bits 1 to 12 */
    CALENDAR_DAYS,         /* bits 1 to 31 */
    CALENDAR_DAYS_TO_LAST, /* bit 31 is the last day of a month, bit 30 the day before it */
    CALENDAR_WEEKDAYS,     /* bits 0 to 6; 0 is Sunday */
    CALENDAR_HOURS,        /* bits 0 to 23 */
    CALENDAR_MINUTES,      /* bits 0 to 59 */
    _CALENDAR_SETS,
};

/* What matches. It owns nothing, so it may be copied. The members belong to the implementation. */
struct calendar {
    const struct zone *zone;
    uint64_t sets[_CALENDAR_SETS];
    bool either_day; /* a day matches by days or by weekdays, otherwise by both */
    unsigned n_seconds;
    struct calendar_range seconds[CALENDAR_SECONDS_MAX]; /* in microseconds */
};

/*
 * Parses an expression; blanks around it are ignored. The calendar borrows its zone from `zones`,
 * which may read it from a file now. Returns 0, CALENDAR_E_INVALID with `*error` set, -ENOMEM, or
 * the -errno of reading a zone. A valid expression may have no slot at all ("*-02-30").
 */
int calendar_parse(const char *text, struct zones *zones, struct calendar *ret,
                   struct calendar_error *error);

/*
 * Sets `*ret` to the first slot later than `after`; both are CLOCK_REALTIME. Returns 0, or
 * CALENDAR_E_END with `*ret` untouched: no year until CALENDAR_YEAR_LAST has a later slot. It
 * allocates nothing and calls no function of the kernel or of the C library's clock.
 */
int calendar_next(const struct calendar *calendar, usec_t after, usec_t *ret);
