/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Formats quantities for people. Each function writes into the caller's buffer and returns it; the
 * macros provide a buffer that lives as long as the enclosing block.
 */

#include "shared/base/clock.h"
#include <stddef.h>
#include <stdint.h>

#define FORMAT_SIZE 64

/* At most two units: "0s", "740ms", "3.2s", "12s", "3min 12s", "2h 5min", "4d 3h". */
char *format_span(char *buffer, size_t size, usec_t span);
#define SPAN(span) format_span((char[FORMAT_SIZE]){0}, FORMAT_SIZE, span)

/* "3min 12s ago"; "now" for the last second and for the future, since clocks may differ. */
char *format_ago(char *buffer, size_t size, usec_t now, usec_t at);
#define AGO(now, at) format_ago((char[FORMAT_SIZE]){0}, FORMAT_SIZE, now, at)

/* "812 B", "38.2 MiB". */
char *format_bytes(char *buffer, size_t size, uint64_t bytes);
#define BYTES(bytes) format_bytes((char[FORMAT_SIZE]){0}, FORMAT_SIZE, bytes)

/* "48,213". */
char *format_count(char *buffer, size_t size, uint64_t count);
#define COUNT(count) format_count((char[FORMAT_SIZE]){0}, FORMAT_SIZE, count)

/* Local time; `at` is since 1970. "Sat 2026-11-21 04:12:33 UTC". */
char *format_time(char *buffer, size_t size, usec_t at);
#define TIME(at) format_time((char[FORMAT_SIZE]){0}, FORMAT_SIZE, at)

/* "Nov 21 04:12:33.123". */
char *format_time_of_day(char *buffer, size_t size, usec_t at);
#define TIME_OF_DAY(at) format_time_of_day((char[FORMAT_SIZE]){0}, FORMAT_SIZE, at)

/* "04:12"; with the date if that is not the day of `now`. */
char *format_clock(char *buffer, size_t size, usec_t now, usec_t at);

/*
 * Makes untrusted text safe for a terminal: control characters and invalid UTF-8 are escaped as
 * "\x1b", invisible characters and those that change the direction of others as "\u202e", tabs
 * become spaces, and text that does not fit is cut with "…". Otherwise the output of a worker could
 * move the reader's cursor.
 */
char *format_safe(char *buffer, size_t size, const char *text);
#define SAFE(text)      format_safe((char[512]){0}, 512, text)
#define SAFE_LINE(text) format_safe((char[2048]){0}, 2048, text)

/* Like format_safe(), but ends with the first line; " …" shows that there are more. `size` must be
 * above the size of that mark. */
char *format_first_line(char *buffer, size_t size, const char *text);

/* Like format_safe(), but takes only the last line; "" if the text is empty. */
char *format_last_line(char *buffer, size_t size, const char *text);

/* "" for 1, otherwise "s". */
const char *plural(uint64_t count);
