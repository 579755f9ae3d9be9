/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a shell offers for a word. Each candidate is printed as a line: the whole word, a tab, and a
 * description, which may be empty.
 */

#include <stdbool.h>
#include <stddef.h>

/* More are not printed: nobody reads them. */
#define CANDIDATES_MAX 1000

struct candidates {
    const char *before; /* begins the word, and is not compared: "--state=" */
    const char *typed;  /* how the rest begins so far */
    size_t n;
};

/* Prints `word` if it begins as typed. `about` may be NULL. Leaves out what has control characters.
 */
void candidates_add(struct candidates *candidates, const char *word, const char *about);

/* Like candidates_add(), but for each of the words, which are separated by spaces. */
void candidates_add_words(struct candidates *candidates, const char *words);

/* Tells the shell to offer names of files as well: a line that begins with a tab. */
void candidates_add_files(struct candidates *candidates);

/* Whether further ones would not be printed. */
bool candidates_full(const struct candidates *candidates);
