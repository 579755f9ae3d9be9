/* SPDX-License-Identifier: MIT */
#pragma once

/* One line on standard error, after "troupectl: ". Control characters in it are made visible. */

#include <stddef.h>

void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, followed by "; did you mean 'NEAREST'?" unless `nearest` is NULL or empty. */
void complain_nearest(const char *nearest, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
