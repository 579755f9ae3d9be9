/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Time zones, from the compiled files of tzdata (RFC 8536). Each is read once and then immutable;
 * nothing here depends on the environment or on the C library's notion of a local zone, which all
 * threads share.
 *
 * The wall clock of a zone shows local time. Times are in microseconds: instants since 1970-01-01
 * 00:00 UTC, wall times as if the clock had shown 1970-01-01 00:00 and had never been changed
 * since.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    _ZONE_E_SUCCESS,
    ZONE_E_MISSING, /* there is no zone of that name */
    ZONE_E_INVALID, /* its file is damaged, or older than version 2, or counts leap seconds */
};

/* The zones that have been read. */
struct zones {
    struct zone *first;
};

/* clang-format off */
#define ZONES_NULL {0}
/* clang-format on */

/* Frees all zones; what zones_get() returned is invalid then. */
void zones_deinit(struct zones *zones);

/*
 * Sets `*ret` to the zone, which `zones` owns. `name` is one of the IANA database ("UTC",
 * "Europe/Berlin"), or NULL for the machine's local zone: /etc/localtime, and UTC if that is
 * missing. Reads the zone's file, below /usr/share/zoneinfo, if this is the first call for it.
 * Returns 0, ZONE_E_*, -ENOMEM, or -errno of reading.
 */
int zones_get(struct zones *zones, const char *name, const struct zone **ret);

/* Adds a zone from the contents of its file, or one that is always UTC if `data` is NULL.
 * zones_get() then finds it under `name`, which is "" for the local zone. Returns 0, ZONE_E_INVALID
 * or -ENOMEM. */
int zones_add(struct zones *zones, const char *name, const void *data, size_t size,
              const struct zone **ret);

/* The first wall time that the clock has not shown before `instant`: that of `instant`, or a later
 * one if the clock is repeating an hour. `instant` is 0 or later. */
int64_t zone_wall(const struct zone *zone, int64_t instant);

/* Sets `*ret` to the first instant at which the clock shows `wall`, and returns true. If the clock
 * skips that time, returns false and sets `*ret` to the first later wall time that it shows. */
bool zone_instant(const struct zone *zone, int64_t wall, int64_t *ret);
