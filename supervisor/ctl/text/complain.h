/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Error messages: one line each on standard error, after "troupectl: ". Control characters are
 * escaped; messages are cut after 4 KiB.
 */

/* As printf(3), without a newline. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like complain(), but appends "; did you mean 'NEAREST'?", or `hint` if `nearest` is NULL or
 * empty. */
void complain_unknown(const char *nearest, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
