/* SPDX-License-Identifier: MIT */
#pragma once

/* "Did you mean …?": finds the known word nearest to a misspelt one. */

#include <stddef.h>

#define SUGGEST_WORD_MAX 64 /* longer words have no nearest one */

/*
 * Counts the characters to insert, delete, replace or swap with their neighbour, ignoring case.
 * Returns SIZE_MAX for more than three, or if either word is longer than SUGGEST_WORD_MAX: clients
 * may ask for the nearest of thousands of names, so that must take little time.
 */
size_t suggest_distance(const char *a, const char *b);

/*
 * Returns the nearest (the first of equals) of the NULL-terminated `known` words, or NULL if none
 * is near: at most three characters differ, and not more than about a third of the parts of the
 * words in which they are, such as Limit and CORE of LimitCORE; or a few are missing at the end.
 */
const char *suggest_nearest(const char *word, const char *const *known);
