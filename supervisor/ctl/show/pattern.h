/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Lines for people about a JSON object, described by patterns:
 *
 *   {name}          the member: text, made safe, or a number. "a.b" is member b of member a.
 *   {name:format}   the member in one of the formats in pattern.c
 *   {a-b:format}    the time from b to a
 *   {name/text}     the rest of the member, given if that begins with the text
 *   {name=text}     a condition that writes nothing; so is {name>number}. With a format, it also
 *                   writes the member.
 *   [this|that]     the first alternative that applies: all its members are given, its conditions
 *                   are met, and if it consists of parts only, one of them applies
 *   <this|that>     likewise; if none applies, the alternative around it does not either
 *
 * A member is given unless it is absent, null, false, or an empty text or array, or its format
 * yields an empty text, such as a missing last line. The number of an array is its size. A
 * separator (", " or "; ") is left out at the beginning of the text, and after a blank or "(" of
 * the pattern.
 */

#include "shared/base/clock.h"
#include "supervisor/ctl/text/terminal.h"
#include <jansson.h>
#include <stdbool.h>

/* Returns the text, which the caller frees; NULL when out of memory. `now` is the wall clock. */
char *pattern_text(const char *pattern, const json_t *object, usec_t now);

/* Prints the lines of the text that are not empty. */
void pattern_print(const struct terminal *terminal, const char *pattern, const json_t *object,
                   usec_t now);
