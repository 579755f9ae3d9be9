/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Complaints: one line each on standard error, after "troupectl: ". Control characters are made
 * visible, more than 4 KiB is cut.
 */

#include <stddef.h>

/* As printf(3), without a newline. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, followed by "; did you mean 'NEAREST'?" unless `nearest` is NULL or empty. */
void complain_nearest(const char *nearest, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
