/* SPDX-License-Identifier: MIT */
#pragma once

/* Parses values of the command line. All functions return 0, or -EINVAL without changing `*ret`. */

#include "shared/base/clock.h"
#include <stdint.h>

/*
 * A time span as in the configuration: "1min 30s", "500ms", "1.5h", a number of seconds,
 * "infinity".
 */
int value_span(const char *text, usec_t *ret);

/* "MIN..MAX", both spans, MIN <= MAX; a single span stands for both. */
int value_span_range(const char *text, usec_t *ret_min, usec_t *ret_max);

/*
 * "HH:MM[:SS]" (the next time that the local clock shows it, as seen from `now`), "YYYY-MM-DD
 * HH:MM[:SS]" (local), or "@SECONDS" since 1970. Realtime.
 */
int value_date(const char *text, usec_t now, usec_t *ret);

/* A date as above, "YYYY-MM-DD" (local), or as in the id of a slot's job: "2026-11-22T02:00:00Z",
 * or the whole id. */
int value_slot(const char *text, usec_t now, usec_t *ret);

int value_number(const char *text, int64_t minimum, int64_t maximum, int64_t *ret);
