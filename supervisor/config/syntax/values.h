/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reads values of configuration files as systemd does (systemd.time(7), systemd.syntax(7)). White
 * space around a value is allowed. Returns 0, or a result below with `*ret` untouched.
 */

#include "shared/base/clock.h"
#include <stdint.h>

enum {
    _VALUES_E_SUCCESS,
    VALUES_E_INVALID, /* not such a value at all */
    VALUES_E_RANGE,   /* too large for the type */
};

/* Microseconds: "50" (seconds), "1min 30s", "1.5h", "200ms"; "infinity" = USEC_INFINITY. */
int values_time(const char *text, usec_t *ret);

/* Bytes, base 1024: "4096", "512M", "1.5G", "2G 512M"; "infinity" = UINT64_MAX. */
int values_size(const char *text, uint64_t *ret);

/* A decimal number without sign; "infinity" = UINT64_MAX. */
int values_count(const char *text, uint64_t *ret);

/* A decimal number with or without sign. */
int values_integer(const char *text, int64_t *ret);

/* "150%": a whole number of per cent. */
int values_percent(const char *text, uint64_t *ret);

/* A number, or a share of the processors that this process may use: "50%" of 2 is 1; at least 1. */
int values_workers(const char *text, uint64_t *ret);
/* Such a number, or a range "2..16" of two, which may end with "auto": the number of those
 * processors, but not less than the beginning. */
int values_workers_range(const char *text, uint64_t *ret_low, uint64_t *ret_high);

/* A share: "0.2", or "20%". Not negative. */
int values_fraction(const char *text, double *ret);

#define VALUES_CPU_MAX 8191 /* the highest number that Linux can be built for */

/* Adds the CPUs of "0-3,6 8" to those of `*list`, which is replaced by a new text: "0-3,6,8", in
 * the order in which they were given. It is owned by the caller; NULL = none so far. Also returns
 * -ENOMEM. */
int values_cpus(const char *text, char **list);

/* Checks a calendar expression. `*ret_moments`: how many slots it has; 2 = two or more. Returns 0,
 * VALUES_E_INVALID with `*ret_reason` (static), or -ENOMEM. */
int values_calendar(const char *text, unsigned *ret_moments, const char **ret_reason);

/* "SIGTERM", "TERM", "15", "RTMIN+3", "RTMAX-1". */
int values_signal(const char *text, int *ret);
