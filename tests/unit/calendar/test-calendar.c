/* SPDX-License-Identifier: MIT */
#include "shared/base/unitfile.h"
#include "supervisor/calendar/calendar.h"
#include "tests/unit/suite.h"
#include <inttypes.h>
#include <time.h>

/* ---- helpers ---- */

/* "2024-02-29 12:00:00" or with a fraction, in UTC. */
static usec_t at(const char *text)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%d %H:%M:%S", &tm);
    double fraction = rest && *rest == '.' ? atof(rest) : 0;

    ck_assert_msg(rest != NULL, "not a time: %s", text);
    return (usec_t)timegm(&tm) * USEC_PER_SEC + (usec_t)(fraction * 1e6 + 0.5);
}

static void format(usec_t usec, char to[40])
{
    time_t seconds = (time_t)(usec / USEC_PER_SEC);
    struct tm tm;
    size_t length;

    gmtime_r(&seconds, &tm);
    length = strftime(to, 40, "%Y-%m-%d %H:%M:%S", &tm);
    if (usec % USEC_PER_SEC != 0)
        snprintf(to + length, 40 - length, ".%06u", (unsigned)(usec % USEC_PER_SEC));
}

/* ---- the program as an oracle's counterpart ---- */

/*
 * Reads lines "BASE COUNT EXPRESSION", with BASE in microseconds, and answers each with a line: the
 * slots after BASE, in microseconds, then "end" if there are fewer than COUNT; or "error COLUMN
 * TEXT".
 */
static void answer(char *line, struct zones *zones)
{
    struct calendar calendar;
    struct calendar_error error;
    usec_t time;
    int n, offset, r;

    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%" SCNu64 " %d %n", &time, &n, &offset) < 2)
        abort();
    r = calendar_parse(line + offset, zones, &calendar, &error);
    if (r == CALENDAR_E_INVALID)
        printf("error %u %s", error.column, error.text);
    else if (r != 0)
        abort();
    while (r == 0 && n-- > 0) {
        r = calendar_next(&calendar, time, &time);
        if (r == 0)
            printf("%" PRIu64 " ", time);
        else
            printf("end");
    }
    printf("\n");
}

static int answer_all(void)
{
    struct zones zones = ZONES_NULL;
    char line[1024];

    while (fgets(line, sizeof(line), stdin)) {
        answer(line, &zones);
        fflush(stdout);
    }
    zones_deinit(&zones);
    return 0;
}

const struct suite suite = {.argument = "slots", .with_argument = answer_all};

/* ---- slots ---- */

static void parse(const char *expression, struct zones *zones, struct calendar *ret)
{
    struct calendar_error error = {0};
    int r = calendar_parse(expression, zones, ret, &error);

    ck_assert_msg(r == 0, "%s: %d, column %u: %s", expression, r, error.column, error.text);
}

/* Writes up to three slots, with commas between them. */
static void list_slots(const char *expression, const char *after, struct zones *zones, char to[200])
{
    struct calendar calendar;
    usec_t time = at(after);
    size_t length = 0;
    char slot[40];

    parse(expression, zones, &calendar);
    to[0] = '\0';
    for (int i = 0; i < 3 && calendar_next(&calendar, time, &time) == 0; i++) {
        format(time, slot);
        length += (size_t)snprintf(to + length, 200 - length, "%s%s", i > 0 ? ", " : "", slot);
    }
}

static void check_slots(const char *expression, const char *after, const char *expected)
{
    struct zones zones = ZONES_NULL;
    char slots[200];

    list_slots(expression, after, &zones, slots);
    zones_deinit(&zones);
    ck_assert_msg(expected[0] != '\0' ? strncmp(slots, expected, strlen(expected)) == 0
                                      : slots[0] == '\0',
                  "%s after %s: %s, not %s", expression, after, slots, expected);
}

/* Slots in UTC: the first ones after the given time, or "" if there are none. */
struct case_of_slots {
    const char *expression, *after, *slots;
};

#define NEW_YEAR "2024-01-01 00:00:00" /* a Monday */

static const struct case_of_slots SYSTEMD[] = {
    {"daily UTC", "2024-02-28 12:00:00", "2024-02-29 00:00:00, 2024-03-01 00:00:00"},
    {"minutely utc", NEW_YEAR, "2024-01-01 00:01:00, 2024-01-01 00:02:00"},
    {"weekly UTC", NEW_YEAR, "2024-01-08 00:00:00"},
    {"QUARTERLY UTC", NEW_YEAR, "2024-04-01 00:00:00, 2024-07-01 00:00:00, 2024-10-01 00:00:00"},
    {"semiannually UTC", NEW_YEAR, "2024-07-01 00:00:00, 2025-01-01 00:00:00"},
    {"Mon..Fri 09:00 UTC", "2024-01-05 09:00:00", "2024-01-08 09:00:00, 2024-01-09 09:00:00"},
    {"Mon-Wed,Sunday UTC", NEW_YEAR, "2024-01-02 00:00:00, 2024-01-03 00:00:00, 2024-01-07"},
    {"Wed, 17:48 UTC", NEW_YEAR, "2024-01-03 17:48:00, 2024-01-10 17:48:00"},
    {"Fri *-*~07/1 18:00 UTC", NEW_YEAR, "2024-01-26 18:00:00, 2024-02-23 18:00:00, 2024-03-29"},
    {"*-*~01 UTC", NEW_YEAR, "2024-01-31 00:00:00, 2024-02-29 00:00:00, 2024-03-31 00:00:00"},
    {"02~03 UTC", NEW_YEAR, "2024-02-27 00:00:00, 2025-02-26 00:00:00"},
    {"*-*~1..6/2 UTC", NEW_YEAR, "2024-01-27 00:00:00, 2024-01-29 00:00:00, 2024-01-31"},
    {"*-*~6/2 UTC", NEW_YEAR, "2024-01-26 00:00:00, 2024-01-28 00:00:00, 2024-01-30"},
    {"Mon *-02-29 UTC", NEW_YEAR, "2044-02-29 00:00:00, 2072-02-29 00:00:00, 2112-02-29"},
    {"*-02-30 UTC", NEW_YEAR, ""},
    {"2023-*-* UTC", NEW_YEAR, ""},
    {"69-3-4 UTC", NEW_YEAR, "2069-03-04 00:00:00"},
    {"24..30/3-1-1 UTC", NEW_YEAR, "2027-01-01 00:00:00, 2030-01-01 00:00:00"},
    {"2199-12-31 23:59:59 America/Los_Angeles", NEW_YEAR, "2200-01-01 07:59:59"},
    {"10-15 UTC", NEW_YEAR, "2024-10-15 00:00:00"},
    {"5,3..4:10/25 UTC", NEW_YEAR, "2024-01-01 03:10:00, 2024-01-01 03:35:00, 2024-01-01 04:10:00"},
    {"10:00:00/0.5 UTC", "2024-01-01 10:00:00", "2024-01-01 10:00:00.500000, 2024-01-01 10:00:01"},
    {"05:40:23.4200004/3.1700005 UTC", "2024-01-01 05:40:23.42", "2024-01-01 05:40:26.590001"},
    {"*:*:* UTC", "2024-01-01 00:00:00.5", "2024-01-01 00:00:01, 2024-01-01 00:00:02"},
    {"*:*:58..59 UTC", NEW_YEAR, "2024-01-01 00:00:58, 2024-01-01 00:00:59, 2024-01-01 00:01:58"},
    {"\t daily  UTC ", NEW_YEAR, "2024-01-02 00:00:00"},
};

TEST(expressions_of_systemd_have_its_slots, .n = ELEMENTS(SYSTEMD))
{
    check_slots(SYSTEMD[_i].expression, SYSTEMD[_i].after, SYSTEMD[_i].slots);
}

static const struct case_of_slots CRON[] = {
    {"0 9 * * 1-5 UTC", "2024-01-05 09:00:00", "2024-01-08 09:00:00, 2024-01-09 09:00:00"},
    {"*/20 * * * * UTC", NEW_YEAR, "2024-01-01 00:20:00, 2024-01-01 00:40:00, 2024-01-01 01:00:00"},
    {"5-20/10,59 0 * * * UTC", NEW_YEAR,
     "2024-01-01 00:05:00, 2024-01-01 00:15:00, 2024-01-01 00:59"},
    {"0 0 1 jan,JUL-Aug * UTC", NEW_YEAR, "2024-07-01 00:00:00, 2024-08-01 00:00:00, 2025-01-01"},
    {"0 0 * * 0 UTC", NEW_YEAR, "2024-01-07 00:00:00, 2024-01-14 00:00:00"},
    {"0 0 * * 7 UTC", NEW_YEAR, "2024-01-07 00:00:00, 2024-01-14 00:00:00"},
    {"0 0 * * 0-0 UTC", NEW_YEAR, "2024-01-07 00:00:00, 2024-01-14 00:00:00"},
    {"0 0 * * Sat-Sun UTC", NEW_YEAR, "2024-01-06 00:00:00, 2024-01-07 00:00:00, 2024-01-13"},
    {"0 0 * * SUN-MON UTC", NEW_YEAR, "2024-01-07 00:00:00, 2024-01-08 00:00:00, 2024-01-14"},
    {"0 0 * * friday Asia/Kathmandu", NEW_YEAR, "2024-01-04 18:15:00"},
    /* A day of either kind, but of both if one of the fields begins with an asterisk. */
    {"0 0 13 * FRI UTC", NEW_YEAR, "2024-01-05 00:00:00, 2024-01-12 00:00:00, 2024-01-13 00:00:00"},
    {"0 0 */13 * FRI UTC", NEW_YEAR, "2024-03-01 00:00:00, 2024-06-14 00:00:00, 2024-09-27"},
    {"0 0 13 * */7 UTC", NEW_YEAR, "2024-10-13 00:00:00, 2025-04-13 00:00:00"},
    {"0 0 30 2 * UTC", NEW_YEAR, ""},
    {"@hourly UTC", NEW_YEAR, "2024-01-01 01:00:00"},
    {"@midnight UTC", NEW_YEAR, "2024-01-02 00:00:00"},
    {"@weekly UTC", NEW_YEAR, "2024-01-07 00:00:00"},
    {"@Annually UTC", NEW_YEAR, "2025-01-01 00:00:00"},
};

TEST(cron_lines_have_the_slots_of_cron, .n = ELEMENTS(CRON))
{
    check_slots(CRON[_i].expression, CRON[_i].after, CRON[_i].slots);
}

static const struct case_of_slots CLOCK_CHANGES[] = {
    /* 2:00 becomes 3:00. */
    {"02:30 Europe/Berlin", "2024-03-30 00:00:00", "2024-03-30 01:30:00, 2024-04-01 00:30:00"},
    {"*:0/30 Europe/Berlin", "2024-03-31 00:15:00", "2024-03-31 00:30:00, 2024-03-31 01:00:00"},
    {"30 2 * * * Europe/Berlin", "2024-03-30 00:00:00", "2024-03-30 01:30:00, 2024-04-01 00:30"},
    /* 3:00 becomes 2:00. */
    {"02:30 Europe/Berlin", "2024-10-26 12:00:00", "2024-10-27 00:30:00, 2024-10-28 01:30:00"},
    {"*:0/30 Europe/Berlin", "2024-10-27 00:10:00", "2024-10-27 00:30:00, 2024-10-27 02:00:00"},
    {"02:30 Europe/Berlin", "2024-10-27 01:10:00", "2024-10-28 01:30:00"},
    {"02:30 Europe/Dublin", "2024-10-26 12:00:00", "2024-10-27 02:30:00"},
    {"01:30 Europe/Dublin", "2024-10-26 12:00:00", "2024-10-27 00:30:00, 2024-10-28 01:30:00"},
    /* By half an hour. */
    {"2:0/15 Australia/Lord_Howe", "2024-10-05 02:00:00", "2024-10-05 15:30:00, 2024-10-05 15:45"},
    {"01:45 Australia/Lord_Howe", "2024-04-06 02:00:00", "2024-04-06 14:45:00, 2024-04-07 15:15"},
    /* Midnight is skipped; 30 December 2011 is. */
    {"daily America/Santiago", "2024-09-07 00:00:00", "2024-09-07 04:00:00, 2024-09-09 03:00:00"},
    {"10:00 Pacific/Apia", "2011-12-29 00:00:00", "2011-12-29 20:00:00, 2011-12-30 20:00:00"},
    /* By the rule for later years. */
    {"02:30 Europe/Berlin", "2190-03-27 12:00:00", "2190-03-29 00:30:00"},
};

TEST(clocks_that_change_skip_and_keep_slots, .n = ELEMENTS(CLOCK_CHANGES))
{
    check_slots(CLOCK_CHANGES[_i].expression, CLOCK_CHANGES[_i].after, CLOCK_CHANGES[_i].slots);
}

TEST(an_expression_without_a_zone_means_the_local_one)
{
    _cleanup_free_ char *data = NULL;
    struct zones zones = ZONES_NULL;
    const struct zone *zone;
    char slots[200];
    size_t size;

    ck_assert_int_eq(unitfile_read("/usr/share/zoneinfo/Asia/Kathmandu", &data, &size), 0);
    ck_assert_int_eq(zones_add(&zones, "", data, size, &zone), 0);
    list_slots("Mon 10:00", NEW_YEAR, &zones, slots);
    ck_assert_int_eq(strncmp(slots, "2024-01-01 04:15:00", 19), 0);
    list_slots("0 10 * * Mon", NEW_YEAR, &zones, slots);
    ck_assert_int_eq(strncmp(slots, "2024-01-01 04:15:00", 19), 0);
    zones_deinit(&zones);
}

TEST(a_slot_is_found_from_the_microsecond_before_it)
{
    struct zones zones = ZONES_NULL;
    struct calendar calendar;
    usec_t time, slot = at("2024-01-02 00:00:00");

    parse("daily UTC", &zones, &calendar);
    ck_assert_int_eq(calendar_next(&calendar, slot - 1, &time), 0);
    ck_assert_uint_eq(time, slot);
    ck_assert_int_eq(calendar_next(&calendar, slot, &time), 0);
    ck_assert_uint_eq(time, at("2024-01-03 00:00:00"));
    zones_deinit(&zones);
}

TEST(after_the_last_year_there_is_no_slot)
{
    struct zones zones = ZONES_NULL;
    struct calendar calendar;
    usec_t time = 7;

    parse("*:*:* UTC", &zones, &calendar);
    ck_assert_int_eq(calendar_next(&calendar, at("2199-12-31 23:59:59"), &time), CALENDAR_E_END);
    ck_assert_int_eq(calendar_next(&calendar, USEC_INFINITY, &time), CALENDAR_E_END);
    ck_assert_uint_eq(time, 7);
    ck_assert_int_eq(calendar_next(&calendar, at("2199-12-31 23:59:58"), &time), 0);
    zones_deinit(&zones);
}

TEST(the_first_slot_is_after_1970_began)
{
    struct zones zones = ZONES_NULL;
    struct calendar calendar;
    usec_t time;

    parse("*:*:* America/New_York", &zones, &calendar);
    ck_assert_int_eq(calendar_next(&calendar, 0, &time), 0);
    ck_assert_uint_eq(time, 5 * 3600 * USEC_PER_SEC);
    parse("*:*:* Europe/Berlin", &zones, &calendar);
    ck_assert_int_eq(calendar_next(&calendar, 0, &time), 0);
    ck_assert_uint_eq(time, USEC_PER_SEC);
    zones_deinit(&zones);
}

/* ---- errors ---- */

static const struct {
    const char *expression;
    unsigned column;
    const char *text;
} ERRORS[] = {
    {"", 1, "it must be like \"Mon..Fri 09:00\", \"daily\" or \"0 9 * * 1-5\""},
    {"  ", 1, "it must be like \"Mon..Fri 09:00\", \"daily\" or \"0 9 * * 1-5\""},
    {"fortnightly", 1, "the weekday must be Mon to Sun"},
    {"Mon,Fre", 5, "the weekday must be Mon to Sun"},
    {"Mon;Tue", 4, "only a comma, -, / or \" \" may follow"},
    {"Sat..Tue", 1, "a range must not end before it begins"},
    {"Mon 25:00", 5, "the hour must be 0 to 23"},
    {"10:60", 4, "the minute must be 0 to 59"},
    {"10:00:60", 7, "the second must be 0 to 59.999999"},
    {"10:00:59.9999999", 7, "the second must be 0 to 59.999999"},
    {"10:30:", 7, "the second must be 0 to 59.999999"},
    {"10:30:15:00", 9, "only a comma, .., / or \" \" may follow"},
    {"10:00/0", 7, "a step must be a number from 1 to 9999"},
    {"10:00:00/0.0000001", 10, "a step must be a number from 0.000001 to 3599"},
    {"1969-1-1", 1, "the year must be 1970 to 2199"},
    {"2200-1-1", 1, "the year must be 1970 to 2199"},
    {"100-1-1", 1, "the year must be 1970 to 2199"},
    {"2024-13-1", 6, "the month must be 1 to 12"},
    {"2024-1-32", 8, "the day must be 1 to 31"},
    {"2024~1-1", 5, "only a comma, .., / or \"-\" may follow"},
    {"*-Jan-1", 3, "the month must be 1 to 12"},
    {"10", 1,
     "there must be weekdays, a date with - or ~, a time with :, and a time zone, in this "
     "order; or the five fields of a cron line"},
    {"10:00 10-10", 7,
     "there must be weekdays, a date with - or ~, a time with :, and a time zone, "
     "in this order; or the five fields of a cron line"},
    {"daily Mars/Olympus", 7,
     "the time zone must be one of the IANA database, such as UTC or "
     "Europe/Berlin"},
    {"daily Etc/../UTC", 7,
     "the time zone must be one of the IANA database, such as UTC or "
     "Europe/Berlin"},
    {"60 0 * * *", 1, "the minute must be 0 to 59"},
    {"0 24 * * *", 3, "the hour must be 0 to 23"},
    {"0 0 0 * *", 5, "the day must be 1 to 31"},
    {"0 0 * Foo *", 7, "the month must be 1 to 12 or Jan to Dec"},
    {"0 0 * * 8", 9, "the day of the week must be 0 to 7 or Sun to Sat"},
    {"0 0 * * 5-1", 9, "a range must not end before it begins"},
    {"0 0 * * 1 7", 11, "only a time zone may follow the five fields of a cron line"},
    {"0:0 * * * *", 2, "only a comma, -, / or \" \" may follow"},
    {"@reboot", 1, "a word after @ must be hourly, daily, midnight, weekly, monthly or yearly"},
};

TEST(an_error_says_where_and_what_is_allowed, .n = ELEMENTS(ERRORS))
{
    struct zones zones = ZONES_NULL;
    struct calendar calendar;
    struct calendar_error error = {0};

    ck_assert_int_eq(calendar_parse(ERRORS[_i].expression, &zones, &calendar, &error),
                     CALENDAR_E_INVALID);
    ck_assert_msg(error.column == ERRORS[_i].column && strcmp(error.text, ERRORS[_i].text) == 0,
                  "%s: column %u: %s", ERRORS[_i].expression, error.column, error.text);
    zones_deinit(&zones);
}

TEST(a_list_of_seconds_has_a_bound)
{
    char expression[600] = "0:0:0";
    struct zones zones = ZONES_NULL;
    struct calendar calendar;
    struct calendar_error error = {0};

    for (unsigned i = 1; i < CALENDAR_SECONDS_MAX; i++)
        strcat(expression, ",0");
    ck_assert_int_eq(calendar_parse(expression, &zones, &calendar, &error), 0);
    strcat(expression, ",0");
    ck_assert_int_eq(calendar_parse(expression, &zones, &calendar, &error), CALENDAR_E_INVALID);
    ck_assert_str_eq(error.text, "a list of seconds must have at most 60 elements");
    zones_deinit(&zones);
}
