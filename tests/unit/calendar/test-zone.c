/* SPDX-License-Identifier: MIT */
#include "shared/base/clock.h"
#include "shared/base/unitfile.h"
#include "supervisor/calendar/zone.h"
#include "tests/unit/suite.h"
#include <endian.h>

/* ---- files ---- */

struct file {
    uint8_t data[1024];
    size_t size;
};

static void put(struct file *file, const void *data, size_t size)
{
    ck_assert_uint_le(file->size + size, sizeof(file->data));
    memcpy(file->data + file->size, data, size);
    file->size += size;
}

static void put_number(struct file *file, uint32_t number)
{
    number = htobe32(number);
    put(file, &number, sizeof(number));
}

/* What a file says; the offset before the first transition is that of type 0. */
struct contents {
    char version;
    uint32_t n_leaps;
    unsigned n_transitions;
    int64_t instants[4];
    uint8_t types[4];
    int32_t offsets[3];
    const char *footer;
};

static void put_header(struct file *file, const struct contents *contents, bool empty)
{
    static const char reserved[15];

    put(file, "TZif", 4);
    put(file, &contents->version, 1);
    put(file, reserved, sizeof(reserved));
    put_number(file, 0);
    put_number(file, 0);
    put_number(file, empty ? 0 : contents->n_leaps);
    put_number(file, empty ? 0 : contents->n_transitions);
    put_number(file, empty ? 0 : ELEMENTS(contents->offsets));
    put_number(file, empty ? 0 : 4);
}

/* The 32-bit block is empty, as zic writes it by default. */
static struct file make_file(const struct contents *contents)
{
    struct file file = {0};

    put_header(&file, contents, true);
    put_header(&file, contents, false);
    for (unsigned i = 0; i < contents->n_transitions; i++) {
        uint64_t instant = htobe64((uint64_t)contents->instants[i]);

        put(&file, &instant, sizeof(instant));
    }
    put(&file, contents->types, contents->n_transitions);
    for (unsigned i = 0; i < ELEMENTS(contents->offsets); i++) {
        put_number(&file, (uint32_t)contents->offsets[i]);
        put(&file, "\0\0", 2);
    }
    put(&file, "\0\0\0", 4); /* the abbreviations */
    for (unsigned i = 0; i < contents->n_leaps; i++)
        put(&file, "\0\0\0\0\0\0\0\1\0\0\0\1", 12);
    put(&file, "\n", 1);
    put(&file, contents->footer, strlen(contents->footer));
    put(&file, "\n", 1);
    return file;
}

static int add_contents(struct zones *zones, const struct contents *contents,
                        const struct zone **ret)
{
    struct file file = make_file(contents);

    return zones_add(zones, "Test", file.data, file.size, ret);
}

/* ---- look-up ---- */

#define S ((int64_t)USEC_PER_SEC)

static void check_instant(const struct zone *zone, int64_t wall, int64_t expected)
{
    int64_t instant;

    ck_assert(zone_instant(zone, wall * S, &instant));
    ck_assert_int_eq(instant, expected * S);
    ck_assert_int_eq(zone_wall(zone, instant), wall * S);
}

static void check_skipped(const struct zone *zone, int64_t wall, int64_t next)
{
    int64_t later;

    ck_assert(!zone_instant(zone, wall * S, &later));
    ck_assert_int_eq(later, next * S);
}

/* An hour ahead of UTC, then two hours from 100000 s on, then one again from 200000 s on. */
static const struct contents SUMMER = {
    .version = '2',
    .n_transitions = 2,
    .instants = {100000, 200000},
    .types = {1, 0},
    .offsets = {3600, 7200},
    .footer = "",
};

TEST(the_clock_skips_an_hour_and_repeats_one)
{
    struct zones zones = ZONES_NULL;
    const struct zone *zone;

    ck_assert_int_eq(add_contents(&zones, &SUMMER, &zone), 0);
    check_instant(zone, 3600, 0);
    check_instant(zone, 103599, 99999);
    check_skipped(zone, 103600, 107200);
    check_skipped(zone, 107199, 107200);
    check_instant(zone, 107200, 100000);
    check_instant(zone, 207199, 199999);
    check_instant(zone, 207200, 203600);
    /* While an hour is repeated, the first new time is the one after it. */
    ck_assert_int_eq(zone_wall(zone, 200000 * S), 207200 * S);
    ck_assert_int_eq(zone_wall(zone, 203599 * S), 207200 * S);
    zones_deinit(&zones);
}

TEST(a_change_within_a_repeated_hour_repeats_nothing_twice)
{
    const struct contents contents = {.version = '2',
                                      .n_transitions = 3,
                                      .instants = {100000, 101000, 102000},
                                      .types = {1, 2, 1},
                                      .offsets = {7200, 0, 3600},
                                      .footer = ""};
    struct zones zones = ZONES_NULL;
    const struct zone *zone;

    ck_assert_int_eq(add_contents(&zones, &contents, &zone), 0);
    ck_assert_int_eq(zone_wall(zone, 99999 * S), 107199 * S);
    ck_assert_int_eq(zone_wall(zone, 101500 * S), 107200 * S);
    check_instant(zone, 107199, 99999);
    check_instant(zone, 107200, 107200);
    zones_deinit(&zones);
}

TEST(transitions_before_1970_count_as_one)
{
    const struct contents contents = {.version = '3',
                                      .n_transitions = 3,
                                      .instants = {INT64_MIN, -5, INT64_MAX},
                                      .types = {1, 2, 0},
                                      .offsets = {1, 2, 3},
                                      .footer = "EST5EDT,M3.2.0,M11.1.0"};
    struct zones zones = ZONES_NULL;
    const struct zone *zone;

    ck_assert_int_eq(add_contents(&zones, &contents, &zone), 0);
    check_instant(zone, 3, 0);
    check_instant(zone, 4000000003, 4000000000);
    zones_deinit(&zones);
}

/* ---- footers ---- */

/* The offset at that instant, which is not in a repeated hour. */
static const struct {
    const char *footer;
    int64_t instant, offset;
} FOOTERS[] = {
    {"", 1720000000, 0},                              /* that of the last transition */
    {"CET-1CEST,M3.5.0,M10.5.0/3", 1711846799, 3600}, /* 2024-03-31 00:59:59 UTC */
    {"CET-1CEST,M3.5.0,M10.5.0/3", 1711846800, 7200},
    {"CET-1CEST,M3.5.0,M10.5.0/3", 1729990799, 7200}, /* 2024-10-27 00:59:59 UTC */
    {"CET-1CEST,M3.5.0,M10.5.0/3", 1729994400, 3600},
    {"AEST-10AEDT,M10.1.0,M4.1.0/3", 1712419199, 39600}, /* 2024-04-06 15:59:59 UTC */
    {"AEST-10AEDT,M10.1.0,M4.1.0/3", 1712422800, 36000},
    {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 1728142200, 39600}, /* 2024-10-05 15:30 UTC */
    {"IST-1GMT0,M10.5.0,M3.5.0/1", 1711846800, 3600},
    {"IST-1GMT0,M10.5.0,M3.5.0/1", 1711846799, 0},
    {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1711846800, -3600},
    {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1711846799, -7200},
    {"EET-2EEST,M4.5.5/24,M10.5.4/24", 1714168799, 7200}, /* 2024-04-26 21:59:59 UTC */
    {"EET-2EEST,M4.5.5/24,M10.5.4/24", 1714168800, 10800},
    /* Day 60 without 29 February is 1 March; with it, counted from 0, it is so in leap years. */
    {"A0B,J60/0,J300", 1709251199, 0},
    {"A0B,J60/0,J300", 1709251200, 3600},
    {"A0B,60/0,300", 1709251199, 0},
    {"A0B,60/0,300", 1709251200, 3600},
    {"A0B,60/0,300", 1677715199, 0}, /* 2023-03-01 23:59:59 UTC */
    {"A0B,60/0,300", 1677715200, 3600},
    {"XXX3EDT4,0/0,J365/23", 1720000000, -4 * 3600}, /* always EDT, as in RFC 8536 */
    {"XXX3EDT4,0/0,J365/23", 1704067200, -4 * 3600},
    {"XXX3EDT4,0/0,J365/23", 1704078000, -4 * 3600}, /* the end of EDT, and its beginning */
    {"MST7:30:15", 1720000000, 0},
};

TEST(a_footer_is_the_rule_after_the_last_transition, .n = ELEMENTS(FOOTERS))
{
    struct contents contents = {.version = '2', .footer = FOOTERS[_i].footer};
    struct zones zones = ZONES_NULL;
    const struct zone *zone;
    int64_t instant = FOOTERS[_i].instant * S;

    ck_assert_int_eq(add_contents(&zones, &contents, &zone), 0);
    ck_assert_msg(zone_wall(zone, instant) == instant + FOOTERS[_i].offset * S, "%s: %lld",
                  FOOTERS[_i].footer, (long long)((zone_wall(zone, instant) - instant) / S));
    zones_deinit(&zones);
}

static const char *const BAD_FOOTERS[] = {
    "EST",
    "EST5EDT",
    "EST5EDT,M3.2.0",
    "EST5EDT,M3.2.0,M11.1.0x",
    "EST5EDT,M13.2.0,M11.1.0",
    "EST5EDT,M3.6.0,M11.1.0",
    "EST5EDT,M3.2.7,M11.1.0",
    "EST5EDT,M3.2,M11.1.0",
    "EST5EDT,J0,J5",
    "EST5EDT,366,5",
    "EST168",
    "EST5:60",
    "<EST5",
};

TEST(a_footer_that_is_no_rule_is_refused, .n = ELEMENTS(BAD_FOOTERS))
{
    struct contents contents = {.version = '2', .footer = BAD_FOOTERS[_i]};
    struct zones zones = ZONES_NULL;
    const struct zone *zone;

    ck_assert_int_eq(add_contents(&zones, &contents, &zone), ZONE_E_INVALID);
    ck_assert_ptr_null(zones.first);
}

/* ---- damaged files ---- */

TEST(a_file_that_was_cut_is_refused)
{
    struct file file = make_file(&SUMMER);
    struct zones zones = ZONES_NULL;
    const struct zone *zone;

    for (size_t size = 0; size < file.size; size++) {
        _cleanup_free_ uint8_t *data = malloc(size + 1);

        memcpy(data, file.data, size);
        ck_assert_int_eq(zones_add(&zones, "Cut", data, size, &zone), ZONE_E_INVALID);
    }
    ck_assert_int_eq(zones_add(&zones, "Whole", file.data, file.size, &zone), 0);
    zones_deinit(&zones);
}

static const struct contents BAD_CONTENTS[] = {
    {.version = '\0', .footer = ""},
    {.version = '1', .footer = ""},
    {.version = '2', .n_leaps = 1, .footer = ""},
    {.version = '2', .n_transitions = 1, .instants = {5}, .types = {3}, .footer = ""},
    {.version = '2', .n_transitions = 2, .instants = {6, 5}, .footer = ""},
    {.version = '2', .offsets = {26 * 3600 + 1}, .footer = ""},
    {.version = '2', .offsets = {INT32_MIN}, .footer = ""},
};

TEST(contents_that_break_the_format_are_refused, .n = ELEMENTS(BAD_CONTENTS))
{
    struct zones zones = ZONES_NULL;
    const struct zone *zone;

    ck_assert_int_eq(add_contents(&zones, &BAD_CONTENTS[_i], &zone), ZONE_E_INVALID);
}

/* ---- names ---- */

static const char *const BAD_NAMES[] = {
    "",
    "/Europe/Berlin",
    "../zoneinfo/UTC",
    "Europe/../UTC",
    "Europe",
    "Europe/",
    "Nowhere",
    "UTC/Berlin",
    "Europe/Ber lin",
    "zone.tab",
    "tzdata.zi",
    "a-name-of-sixty-five-bytes-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
};

TEST(only_names_of_zones_are_read, .n = ELEMENTS(BAD_NAMES))
{
    struct zones zones = ZONES_NULL;
    const struct zone *zone;

    ck_assert_int_eq(zones_get(&zones, BAD_NAMES[_i], &zone), ZONE_E_MISSING);
    ck_assert_ptr_null(zones.first);
}

TEST(the_environment_does_not_choose_files)
{
    struct zones zones = ZONES_NULL;
    const struct zone *zone;

    ck_assert_int_eq(setenv("TZDIR", "/nowhere", 1), 0);
    ck_assert_int_eq(setenv("TZ", "Nowhere", 1), 0);
    ck_assert_int_eq(zones_get(&zones, "Asia/Kathmandu", &zone), 0);
    ck_assert_int_eq(zone_wall(zone, 1720000000 * S), (1720000000 + 20700) * S);
    ck_assert_int_eq(zones_get(&zones, NULL, &zone), 0);
    zones_deinit(&zones);
}

TEST(a_zone_is_read_once)
{
    struct zones zones = ZONES_NULL;
    const struct zone *first, *second, *utc, *local;

    ck_assert_int_eq(zones_get(&zones, "Europe/Berlin", &first), 0);
    ck_assert_int_eq(zones_get(&zones, "UTC", &utc), 0);
    ck_assert_int_eq(zones_get(&zones, NULL, &local), 0);
    ck_assert_int_eq(zones_get(&zones, "Europe/Berlin", &second), 0);
    ck_assert_ptr_eq(first, second);
    ck_assert_ptr_ne(utc, first);
    ck_assert_ptr_ne(utc, local);
    ck_assert_int_eq(zone_wall(utc, 5), 5);
    zones_deinit(&zones);
}
