/* SPDX-License-Identifier: MIT */

/*
 * The format is that of RFC 8536: a block of 32-bit data, a block of 64-bit data, and a footer,
 * which is the rule for the time after the last transition in the form of the variable TZ. The
 * rule is expanded into transitions here, so that a look-up has to search one table only.
 */

#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "supervisor/calendar/date.h"
#include "supervisor/calendar/zone-private.h"
#include <endian.h>
#include <string.h>

#define YEAR_LAST   2200 /* one more than a calendar's, whose last slot may be in it in UTC */
#define YEARS       (YEAR_LAST - 1970 + 1)
#define SECONDS_END (date_of_year(YEAR_LAST + 1) * DATE_SECONDS)

#define OFFSET_MAX ((int64_t)26 * 3600)

/* ---- periods ---- */

/* The clock is `offset` ahead of UTC from `start` on; both are in seconds. Starts ascend; of two
 * equal ones the second counts. */
static void add_period(struct zone *zone, int64_t start, int64_t offset)
{
    struct zone_period *period = &zone->periods[zone->n_periods], *before = period - 1;
    int64_t shown;

    start *= (int64_t)USEC_PER_SEC;
    offset *= (int64_t)USEC_PER_SEC;
    if (start <= zone->periods[0].start) {
        zone->periods[0].wall = zone->periods[0].offset = offset;
        return;
    }
    if (before->start == start) {
        zone->n_periods--;
        period--;
        before--;
    }
    shown = start + before->offset;
    *period = (struct zone_period){.start = start, .wall = start + offset, .offset = offset};
    if (period->wall < shown)
        period->wall = shown;
    if (period->wall < before->wall)
        period->wall = before->wall;
    zone->n_periods++;
}

/* ---- the footer ---- */

enum rule_kind {
    RULE_JULIAN,  /* J1 to J365: 29 February has no number */
    RULE_ORDINAL, /* 0 to 365 */
    RULE_WEEKDAY, /* M month.week.weekday: week 5 is the last, weekday 0 is Sunday */
};

struct rule {
    enum rule_kind kind;
    int day, month, week;
    int64_t time; /* seconds after midnight, on the clock before the transition */
};

/* Parses a number with at most three digits. */
static bool take_number(const char **text, int min, int max, int *ret)
{
    const char *at = *text;
    int value = 0;

    while (*at >= '0' && *at <= '9' && at - *text < 3)
        value = value * 10 + *at++ - '0';
    if (at == *text || value < min || value > max)
        return false;
    *text = at;
    *ret = value;
    return true;
}

static bool take(const char **text, char c)
{
    if (**text != c)
        return false;
    (*text)++;
    return true;
}

/* A name of letters, or of other characters in angle brackets. */
static bool take_name(const char **text)
{
    const char *start = *text;

    if (take(text, '<')) {
        *text += strcspn(*text, ">");
        return take(text, '>');
    }
    while ((**text | 0x20) >= 'a' && (**text | 0x20) <= 'z')
        (*text)++;
    return *text - start >= 3;
}

/* [+-]hours[:minutes[:seconds]] */
static bool take_time(const char **text, int64_t *ret)
{
    bool negative = take(text, '-');
    int hours, minutes = 0, seconds = 0;

    if (!negative)
        (void)take(text, '+');
    if (!take_number(text, 0, 167, &hours))
        return false;
    if (take(text, ':') && !take_number(text, 0, 59, &minutes))
        return false;
    if (take(text, ':') && !take_number(text, 0, 59, &seconds))
        return false;
    *ret = ((int64_t)hours * 60 + minutes) * 60 + seconds;
    if (negative)
        *ret = -*ret;
    return true;
}

static bool take_day(const char **text, struct rule *rule)
{
    if (take(text, 'J')) {
        rule->kind = RULE_JULIAN;
        return take_number(text, 1, 365, &rule->day);
    }
    if (!take(text, 'M')) {
        rule->kind = RULE_ORDINAL;
        return take_number(text, 0, 365, &rule->day);
    }
    rule->kind = RULE_WEEKDAY;
    return take_number(text, 1, 12, &rule->month) && take(text, '.') &&
           take_number(text, 1, 5, &rule->week) && take(text, '.') &&
           take_number(text, 0, 6, &rule->day);
}

static bool take_rule(const char **text, struct rule *rule)
{
    rule->time = 2 * 3600;
    return take(text, ',') && take_day(text, rule) &&
           (!take(text, '/') || take_time(text, &rule->time));
}

/* The wall time of the transition in that year, in seconds. */
static int64_t rule_wall(const struct rule *rule, int year)
{
    int64_t day = date_of_year(year) + rule->day;
    int weekday;

    if (rule->kind == RULE_JULIAN)
        day -= !(date_is_leap(year) && rule->day >= 60);
    if (rule->kind == RULE_WEEKDAY) {
        day = date_to_days((struct date){year, rule->month, 1});
        weekday = (date_weekday(day) + 1) % 7;
        day += (rule->day - weekday + 7) % 7 + (rule->week - 1) * 7;
        if (day >= date_to_days((struct date){year, rule->month, 1}) +
                       date_month_length(year, rule->month))
            day -= 7;
    }
    return day * DATE_SECONDS + rule->time;
}

/* Adds the transitions that are later than `last`. */
static void add_rules(struct zone *zone, int64_t last, int64_t standard, int64_t summer,
                      const struct rule rules[2])
{
    for (int year = date_of_days(last / DATE_SECONDS).year; year <= YEAR_LAST; year++) {
        int64_t starts[2] = {rule_wall(&rules[0], year) - standard,
                             rule_wall(&rules[1], year) - summer};
        int64_t offsets[2] = {summer, standard};
        int first = starts[1] < starts[0];

        for (int i = 0; i < 2; i++)
            if (starts[first ^ i] > last)
                add_period(zone, starts[first ^ i], offsets[first ^ i]);
    }
}

/* Offsets in TZ count westward. */
static bool add_footer(struct zone *zone, const char *text, int64_t last)
{
    int64_t standard, summer;
    struct rule rules[2];

    if (*text == '\0')
        return true;
    if (!take_name(&text) || !take_time(&text, &standard))
        return false;
    summer = standard - 3600;
    if (*text == '\0')
        return true;
    if (!take_name(&text) || (*text != ',' && !take_time(&text, &summer)))
        return false;
    if (!take_rule(&text, &rules[0]) || !take_rule(&text, &rules[1]) || *text != '\0')
        return false;
    add_rules(zone, last, -standard, -summer, rules);
    return true;
}

/* ---- the file ---- */

struct input {
    const uint8_t *at;
    size_t left;
};

/* The next bytes, or NULL. */
static const uint8_t *take_bytes(struct input *input, size_t n)
{
    const uint8_t *bytes = input->at;

    if (n > input->left)
        return NULL;
    input->at += n;
    input->left -= n;
    return bytes;
}

static uint32_t number_at(const uint8_t *bytes)
{
    uint32_t number;

    memcpy(&number, bytes, sizeof(number));
    return be32toh(number);
}

static int64_t instant_at(const uint8_t *bytes)
{
    uint64_t number;

    memcpy(&number, bytes, sizeof(number));
    return (int64_t)be64toh(number);
}

/* Numbers of elements, in the order of the header. */
struct counts {
    uint32_t ut, standard, leaps, transitions, types, characters;
};

static bool take_header(struct input *input, struct counts *ret)
{
    const uint8_t *header = take_bytes(input, 44);
    uint32_t *counts[] = {&ret->ut,          &ret->standard, &ret->leaps,
                          &ret->transitions, &ret->types,    &ret->characters};

    if (!header || memcmp(header, "TZif", 4) != 0 || header[4] < '2')
        return false;
    for (size_t i = 0; i < ELEMENTS(counts); i++) {
        *counts[i] = number_at(header + 20 + 4 * i);
        if (*counts[i] > input->left)
            return false;
    }
    return true;
}

/* The size of what follows the transitions' instants and types. */
static size_t trailer_size(const struct counts *counts, size_t instant_size)
{
    return counts->characters + counts->leaps * (instant_size + 4) + counts->standard + counts->ut;
}

static bool offset_of_type(const uint8_t *types, size_t n, size_t type, int64_t *ret)
{
    if (type >= n)
        return false;
    *ret = (int32_t)number_at(types + 6 * type);
    return *ret >= -OFFSET_MAX && *ret <= OFFSET_MAX;
}

/* Adds the transitions of the 64-bit data. `*ret_last` is the last one, 0 or later. */
static bool add_transitions(struct zone *zone, struct input *input, const struct counts *counts,
                            int64_t *ret_last)
{
    const uint8_t *instants = take_bytes(input, counts->transitions * (size_t)8);
    const uint8_t *indexes = take_bytes(input, counts->transitions);
    const uint8_t *types = take_bytes(input, counts->types * (size_t)6);
    int64_t before = INT64_MIN, offset;

    if (!instants || !indexes || !types || !offset_of_type(types, counts->types, 0, &offset))
        return false;
    add_period(zone, 0, offset);
    for (size_t i = 0; i < counts->transitions; i++) {
        int64_t instant = instant_at(instants + 8 * i);

        if (!offset_of_type(types, counts->types, indexes[i], &offset) || instant < before)
            return false;
        before = instant;
        *ret_last = instant < 0 ? 0 : instant < SECONDS_END ? instant : SECONDS_END;
        add_period(zone, *ret_last, offset);
    }
    return true;
}

/* The footer without its newlines, as a string in `text`. */
static bool take_footer(struct input *input, char *text, size_t size)
{
    const uint8_t *start = take_bytes(input, 1);
    const uint8_t *end = memchr(input->at, '\n', input->left);

    if (!start || *start != '\n' || !end || (size_t)(end - input->at) >= size)
        return false;
    memcpy(text, input->at, (size_t)(end - input->at));
    text[end - input->at] = '\0';
    return true;
}

static bool parse(struct zone *zone, struct input *input, const struct counts *counts)
{
    char footer[128];
    int64_t last = 0;

    return counts->leaps == 0 && add_transitions(zone, input, counts, &last) &&
           take_bytes(input, trailer_size(counts, 8)) &&
           take_footer(input, footer, sizeof(footer)) && add_footer(zone, footer, last);
}

int zone_fill(struct zone *zone, const void *data, size_t size)
{
    struct input input = {data, size};
    struct counts counts = {0};

    if (data && (!take_header(&input, &counts) ||
                 !take_bytes(&input, counts.transitions * (size_t)5 + counts.types * (size_t)6 +
                                         trailer_size(&counts, 4)) ||
                 !take_header(&input, &counts)))
        return ZONE_E_INVALID;
    zone->periods = calloc(1 + (size_t)counts.transitions + 2 * YEARS, sizeof(*zone->periods));
    if (!zone->periods)
        return -ENOMEM;
    zone->n_periods = 1;
    return !data || parse(zone, &input, &counts) ? 0 : ZONE_E_INVALID;
}
