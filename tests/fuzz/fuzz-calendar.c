/* SPDX-License-Identifier: MIT */

/*
 * Reads the input as a calendar expression and as the file of a time zone. An expression that is
 * accepted has slots in ascending order, each of which is found from any earlier instant; an error
 * has a place and a text.
 */

#include "supervisor/calendar/calendar.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

static void check_slots(const struct calendar *calendar, usec_t after)
{
    usec_t slot, again;

    for (int i = 0; i < 20 && calendar_next(calendar, after, &slot) == 0; i++) {
        require(slot > after, "a slot that is not later");
        require(calendar_next(calendar, slot - 1, &again) == 0 && again == slot,
                "a slot that is not found from just before it");
        require(calendar_next(calendar, after + (slot - after) / 2, &again) == 0 &&
                    (again == slot || after + (slot - after) / 2 >= slot),
                "a slot that is not found from between");
        after = slot;
    }
}

static void try_expression(const char *text, struct zones *zones)
{
    struct calendar calendar;
    struct calendar_error error = {0};
    int r = calendar_parse(text, zones, &calendar, &error);

    if (r == CALENDAR_E_INVALID) {
        require(error.column > 0 && error.column <= strlen(text) + 1, "an error without a place");
        require(strlen(error.text) > 0, "an error without a text");
        return;
    }
    require(r == 0, "an expression that cannot be read");
    check_slots(&calendar, 0);
    check_slots(&calendar, (usec_t)1700000000 * USEC_PER_SEC);
    check_slots(&calendar, (usec_t)7000000000 * USEC_PER_SEC);
}

static void try_zone(const uint8_t *data, size_t size, struct zones *zones)
{
    const struct zone *zone;

    if (zones_add(zones, "Fuzz", data, size, &zone) == 0)
        try_expression("*:0/20 Fuzz", zones);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zones zones = ZONES_NULL;
    char *text = strndup((const char *)data, size);

    if (text)
        try_expression(text, &zones);
    free(text);
    try_zone(data, size, &zones);
    zones_deinit(&zones);
    return 0;
}
