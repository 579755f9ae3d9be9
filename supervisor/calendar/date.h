/* SPDX-License-Identifier: MIT */
#pragma once

/* Dates of the Gregorian calendar from 1970 on, as days since 1970-01-01. */

#include <stdbool.h>
#include <stdint.h>

#define DATE_SECONDS ((int64_t)86400) /* in a day */

struct date {
    int year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
};

static inline bool date_is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* The number of leap days before the year. */
static inline int date_leap_days(int year)
{
    return (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
}

/* 1 January of the year. */
static inline int64_t date_of_year(int year)
{
    return (int64_t)(year - 1970) * 365 + date_leap_days(year) - date_leap_days(1970);
}

/* The number of days in the year before the month; month 13 stands for the whole year. */
static inline int date_before_month(int year, int month)
{
    static const int16_t before[] = {0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};

    return before[month] + (month > 2 && date_is_leap(year));
}

static inline int date_month_length(int year, int month)
{
    return date_before_month(year, month + 1) - date_before_month(year, month);
}

static inline int64_t date_to_days(struct date date)
{
    return date_of_year(date.year) + date_before_month(date.year, date.month) + date.day - 1;
}

static inline struct date date_of_days(int64_t days)
{
    /* No year is longer than 366 days, so this year is not too late. */
    struct date date = {.year = 1970 + (int)(days / 366), .month = 1};
    int left;

    while (date_of_year(date.year + 1) <= days)
        date.year++;
    left = (int)(days - date_of_year(date.year));
    while (date_before_month(date.year, date.month + 1) <= left)
        date.month++;
    date.day = left - date_before_month(date.year, date.month) + 1;
    return date;
}

/* 0 is Sunday. */
static inline int date_weekday(int64_t days)
{
    return (int)((days + 4) % 7); /* 1970-01-01 was a Thursday. */
}
