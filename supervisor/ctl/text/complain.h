/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Error messages: one line each on standard error, after "troupectl: ". Control characters are
 * escaped; messages are cut after 4 KiB.
 */

#include <stddef.h>

/* As printf(3), without a newline. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, followed by "; did you mean 'NEAREST'?" unless `nearest` is NULL or empty. */
void complain_nearest(const char *nearest, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
