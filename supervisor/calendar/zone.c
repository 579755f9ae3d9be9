/* SPDX-License-Identifier: MIT */
#include "supervisor/calendar/zone.h"

#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "shared/base/unitfile.h"
#include "supervisor/calendar/date.h"
#include <ctype.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#define DIRECTORY  "/usr/share/zoneinfo/"
#define LOCAL_FILE "/etc/localtime"
#define NAME_SIZE  64 /* the longest name of tzdata has 32 bytes */

/* Rules are expanded into periods until the end of this year: a slot of a calendar's last year may
 * be in the next one in UTC. */
#define YEAR_LAST  2200
#define YEARS      (YEAR_LAST - 1970 + 1)
#define OFFSET_MAX ((int64_t)26 * 3600)

/* A time in which the clock is not changed; microseconds. */
struct period {
    int64_t start;  /* instant; the first period also stands for all time before */
    int64_t wall;   /* the first wall time that the clock has not shown in earlier periods */
    int64_t offset; /* wall time minus instant */
};

struct zone {
    struct zone *next;
    char *name;             /* "" is the local zone */
    struct period *periods; /* sorted by start, and hence by wall; at least one */
    size_t n_periods;
};

/* ---- look-up ---- */

/* The last period whose start, or first wall time, is not later; or the first period. */
static const struct period *find_period(const struct zone *zone, int64_t time, bool by_wall)
{
    size_t low = 0, high = zone->n_periods;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        const struct period *period = &zone->periods[middle];

        if ((by_wall ? period->wall : period->start) <= time)
            low = middle;
        else
            high = middle;
    }
    return &zone->periods[low];
}

int64_t zone_wall(const struct zone *zone, int64_t instant)
{
    const struct period *period = find_period(zone, instant, false);
    int64_t wall = instant + period->offset;

    return wall > period->wall ? wall : period->wall;
}

bool zone_instant(const struct zone *zone, int64_t wall, int64_t *ret)
{
    const struct period *period = find_period(zone, wall, true), *next = period + 1;
    bool last = next == zone->periods + zone->n_periods;
    bool shown = last || wall - period->offset < next->start;

    *ret = shown ? wall - period->offset : next->wall;
    return shown;
}

/* ---- periods ---- */

/* The clock is `offset` ahead of UTC from `start` on; both are in seconds. Starts ascend; of two
 * equal ones the second counts. There is a period already. */
static void add_period(struct zone *zone, int64_t start, int64_t offset)
{
    struct period *last = &zone->periods[zone->n_periods - 1];
    struct period period = {.start = start * (int64_t)USEC_PER_SEC,
                            .offset = offset * (int64_t)USEC_PER_SEC};
    int64_t shown;

    period.wall = period.start + period.offset;
    if (period.start <= zone->periods[0].start) {
        zone->periods[0] = period;
        return;
    }
    if (period.start == last->start) {
        zone->n_periods--;
        last--;
    }
    shown = period.start + last->offset;
    if (period.wall < shown)
        period.wall = shown;
    if (period.wall < last->wall)
        period.wall = last->wall;
    zone->periods[zone->n_periods++] = period;
}

/* ---- the footer ---- */

/* The rule for the time after the last transition has the form of the variable TZ. */
struct footer {
    const char *at;
    bool wrong;
};

/* A day of a year and the wall time of its transition, in seconds after midnight. */
struct rule {
    int month, week;  /* the week-th `day` of the month, where week 5 is the last; or month 0 */
    int day;          /* 0 is Sunday; in month 0, days since 1 January */
    bool no_leap_day; /* `day` does not count 29 February */
    int64_t time;
};

static bool take(struct footer *footer, char c)
{
    bool taken = *footer->at == c;

    footer->at += taken;
    return taken;
}

static int take_number(struct footer *footer, int min, int max)
{
    int value = 0, n = 0;

    for (; n < 3 && isdigit((unsigned char)*footer->at); n++)
        value = value * 10 + *footer->at++ - '0';
    footer->wrong |= n == 0 || value < min || value > max;
    return value;
}

/* A name consists of letters, or of anything in angle brackets. */
static void take_name(struct footer *footer)
{
    if (take(footer, '<')) {
        footer->at += strcspn(footer->at, ">");
        footer->wrong |= !take(footer, '>');
        return;
    }
    while (isalpha((unsigned char)*footer->at))
        footer->at++;
}

/* [+-]hours[:minutes[:seconds]] */
static int64_t take_time(struct footer *footer)
{
    bool negative = take(footer, '-');
    int64_t time;

    if (!negative)
        (void)take(footer, '+');
    time = (int64_t)take_number(footer, 0, 167) * 3600;
    if (take(footer, ':'))
        time += (int64_t)take_number(footer, 0, 59) * 60;
    if (take(footer, ':'))
        time += take_number(footer, 0, 59);
    return negative ? -time : time;
}

/* ",M3.5.0", ",J60" or ",59"; "/time" may follow. */
static struct rule take_rule(struct footer *footer)
{
    struct rule rule = {.time = INT64_C(2) * 3600};

    footer->wrong |= !take(footer, ',');
    if (take(footer, 'M')) {
        rule.month = take_number(footer, 1, 12);
        footer->wrong |= !take(footer, '.');
        rule.week = take_number(footer, 1, 5);
        footer->wrong |= !take(footer, '.');
        rule.day = take_number(footer, 0, 6);
    } else {
        rule.no_leap_day = take(footer, 'J');
        rule.day = take_number(footer, rule.no_leap_day, 365) - rule.no_leap_day;
    }
    if (take(footer, '/'))
        rule.time = take_time(footer);
    return rule;
}

/* The wall time of the transition in that year, in seconds. */
static int64_t rule_wall(const struct rule *rule, int year)
{
    int64_t day = date_of_year(year) + rule->day;

    if (rule->month > 0) {
        int64_t first = date_to_days((struct date){year, rule->month, 1});

        day = first + (rule->day - date_weekday(first) + 7) % 7 + (int64_t)(rule->week - 1) * 7;
        if (day >= first + date_month_length(year, rule->month))
            day -= 7;
    } else if (rule->no_leap_day && date_is_leap(year) && rule->day >= 59) {
        day++;
    }
    return day * DATE_SECONDS + rule->time;
}

/* Adds the periods after `last`, in seconds. Offsets count westward in the footer. */
static bool add_footer(struct zone *zone, const char *text, int64_t last)
{
    struct footer footer = {.at = text};
    int64_t offsets[2]; /* summer, winter */
    struct rule rules[2];

    if (*text == '\0')
        return true;
    take_name(&footer);
    offsets[1] = -take_time(&footer);
    if (*footer.at == '\0')
        return !footer.wrong;
    take_name(&footer);
    offsets[0] = *footer.at == ',' ? offsets[1] + 3600 : -take_time(&footer);
    rules[0] = take_rule(&footer);
    rules[1] = take_rule(&footer);
    if (footer.wrong || *footer.at != '\0')
        return false;
    for (int year = date_of_days(last / DATE_SECONDS).year; year <= YEAR_LAST; year++) {
        int64_t starts[2] = {rule_wall(&rules[0], year) - offsets[1],
                             rule_wall(&rules[1], year) - offsets[0]};
        int first = starts[1] < starts[0];

        if (starts[first] > last)
            add_period(zone, starts[first], offsets[first]);
        if (starts[!first] > last)
            add_period(zone, starts[!first], offsets[!first]);
    }
    return true;
}

/* ---- the file ---- */

struct input {
    const uint8_t *at;
    size_t left;
};

/* One of the two blocks of data, of which the second has wider instants. */
struct block {
    uint64_t n_transitions, n_types, n_leaps;
    const uint8_t *instants, *indexes, *types;
};

static int32_t number_at(const uint8_t *bytes)
{
    uint32_t number;

    memcpy(&number, bytes, sizeof(number));
    return (int32_t)be32toh(number);
}

static bool take_block(struct input *input, size_t instant_size, struct block *ret)
{
    uint64_t counts[6], size; /* of UT flags, standard flags, leaps, transitions, types, letters */

    if (input->left < 44 || memcmp(input->at, "TZif", 4) != 0 || input->at[4] < '2')
        return false;
    for (size_t i = 0; i < ELEMENTS(counts); i++)
        counts[i] = (uint32_t)number_at(input->at + 20 + 4 * i);
    size = 44 + counts[3] * (instant_size + 1) + counts[4] * 6 + counts[5] +
           counts[2] * (instant_size + 4) + counts[1] + counts[0];
    if (size > input->left)
        return false;
    *ret = (struct block){counts[3], counts[4], counts[2], .instants = input->at + 44};
    ret->indexes = ret->instants + ret->n_transitions * instant_size;
    ret->types = ret->indexes + ret->n_transitions;
    input->at += size;
    input->left -= size;
    return true;
}

static bool offset_of_type(const struct block *block, size_t type, int64_t *ret)
{
    if (type >= block->n_types)
        return false;
    *ret = number_at(block->types + 6 * type);
    return *ret >= -OFFSET_MAX && *ret <= OFFSET_MAX;
}

/* Adds the periods from 1970 on. `*ret_last` is the start of the last one, in seconds. */
static bool add_transitions(struct zone *zone, const struct block *block, int64_t *ret_last)
{
    int64_t end = date_of_year(YEAR_LAST + 1) * DATE_SECONDS, offset;

    *ret_last = 0;
    if (!offset_of_type(block, 0, &offset))
        return false;
    add_period(zone, 0, offset);
    for (size_t i = 0; i < block->n_transitions; i++) {
        uint64_t bytes;
        int64_t instant;

        memcpy(&bytes, block->instants + sizeof(bytes) * i, sizeof(bytes));
        instant = (int64_t)be64toh(bytes);
        instant = instant < 0 ? 0 : instant < end ? instant : end;
        if (instant < *ret_last || !offset_of_type(block, block->indexes[i], &offset))
            return false;
        add_period(zone, instant, offset);
        *ret_last = instant;
    }
    return true;
}

/* Copies the footer without the newlines around it. */
static bool take_footer(const struct input *input, char *text, size_t size)
{
    const uint8_t *start = input->at + 1, *end;

    if (input->left < 2 || input->at[0] != '\n')
        return false;
    end = memchr(start, '\n', input->left - 1);
    if (!end || (size_t)(end - start) >= size)
        return false;
    memcpy(text, start, (size_t)(end - start));
    text[end - start] = '\0';
    return true;
}

static int fill(struct zone *zone, const void *data, size_t size)
{
    struct input input = {data, size};
    struct block block = {0};
    char footer[128];
    int64_t last;

    if (data && (!take_block(&input, 4, &block) || !take_block(&input, 8, &block)))
        return ZONE_E_INVALID;
    zone->periods = calloc(1 + block.n_transitions + (size_t)2 * YEARS, sizeof(*zone->periods));
    if (!zone->periods)
        return -ENOMEM;
    zone->n_periods = 1;
    if (data && (block.n_leaps > 0 || !add_transitions(zone, &block, &last) ||
                 !take_footer(&input, footer, sizeof(footer)) || !add_footer(zone, footer, last)))
        return ZONE_E_INVALID;
    return 0;
}

/* ---- the zones that have been read ---- */

static void free_zone(struct zone *zone)
{
    free(zone->name);
    free(zone->periods);
    free(zone);
}

void zones_deinit(struct zones *zones)
{
    while (zones->first) {
        struct zone *zone = zones->first;

        zones->first = zone->next;
        free_zone(zone);
    }
}

int zones_add(struct zones *zones, const char *name, const void *data, size_t size,
              const struct zone **ret)
{
    struct zone *zone = calloc(1, sizeof(*zone));
    int r;

    if (!zone)
        return -ENOMEM;
    zone->name = strdup(name);
    r = zone->name ? fill(zone, data, size) : -ENOMEM;
    if (r != 0) {
        free_zone(zone);
        return r;
    }
    zone->next = zones->first;
    *ret = zones->first = zone;
    return 0;
}

/* Without a dot, no component is "..". */
static bool name_is_valid(const char *name)
{
    size_t length = strlen(name);

    for (const char *at = name; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && !strchr("+-_/", *at))
            return false;
    return length > 0 && length <= NAME_SIZE && name[0] != '/';
}

static int read_zone(struct zones *zones, const char *name, const struct zone **ret)
{
    char path[sizeof(DIRECTORY) + NAME_SIZE] = LOCAL_FILE;
    _cleanup_free_ char *data = NULL;
    size_t size;
    int r;

    if (name[0] != '\0')
        (void)snprintf(path, sizeof(path), DIRECTORY "%s", name);
    r = unitfile_read(path, &data, &size);
    if (r == -ENOENT && name[0] == '\0')
        return zones_add(zones, name, NULL, 0, ret);
    if (r == -ENOENT || r == -ENOTDIR || r == UNITFILE_E_NOT_REGULAR)
        return ZONE_E_MISSING;
    if (r != 0)
        return r < 0 ? r : ZONE_E_INVALID;
    return zones_add(zones, name, data, size, ret);
}

int zones_get(struct zones *zones, const char *name, const struct zone **ret)
{
    if (name && !name_is_valid(name))
        return ZONE_E_MISSING;
    if (!name)
        name = "";
    for (const struct zone *zone = zones->first; zone; zone = zone->next)
        if (strcmp(zone->name, name) == 0) {
            *ret = zone;
            return 0;
        }
    if (strcmp(name, "UTC") == 0)
        return zones_add(zones, name, NULL, 0, ret);
    return read_zone(zones, name, ret);
}
