/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * "Did you mean …?": the known word that a misspelt one is nearest to.
 */

#include <stddef.h>

#define SUGGEST_WORD_MAX 64 /* longer words are near to nothing */

/*
 * Steps from one word to the other: a character inserted, left out, replaced, or two neighbours
 * swapped; case does not count. Either word longer than SUGGEST_WORD_MAX: SIZE_MAX.
 */
size_t suggest_distance(const char *a, const char *b);

/*
 * The nearest of the NULL-terminated `known` words (borrowed; the first of equals), or NULL if more
 * than about a third of the longer word differs.
 */
const char *suggest_nearest(const char *word, const char *const *known);
