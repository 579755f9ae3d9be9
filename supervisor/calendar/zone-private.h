/* SPDX-License-Identifier: MIT */
#pragma once

/* Between zone.c, which finds and reads files, and zone-file.c, which parses them. */

#include "supervisor/calendar/zone.h"

/* A time in which the clock is not changed. */
struct zone_period {
    int64_t start;  /* instant; the first period also stands for all time before */
    int64_t wall;   /* the first wall time that the clock has not shown in earlier periods */
    int64_t offset; /* wall time minus instant */
};

struct zone {
    struct zone *next;
    char *name;                  /* "" is the local zone */
    struct zone_period *periods; /* sorted by start, and hence by wall; at least one */
    size_t n_periods;
};

/* Fills in the periods from 1970 to CALENDAR_YEAR_LAST from the contents of a file; UTC if `data`
 * is NULL. Returns 0, ZONE_E_INVALID or -ENOMEM; `zone->periods` may be set in every case. */
int zone_fill(struct zone *zone, const void *data, size_t size);
