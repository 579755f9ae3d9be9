/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Names of what exists now, from the supervisor that the options of the invocation name. All
 * functions print what it answers within --timeout, by default half a second, and no errors.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * What a shell offers for a word. Each candidate is printed as a line: the whole word, a tab, and a
 * description, which may be empty.
 */

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

/* ---- names of what exists ---- */

struct invocation;

enum live_targets {
    LIVE_GROUPS = 1 << 0,
    LIVE_CELLS = 1 << 1,
    LIVE_WORKERS = 1 << 2,
};

/* Groups, cells and workers: any of enum live_targets. */
void live_targets(struct invocation *invocation, struct candidates *candidates, unsigned which);

/* Ids of jobs; with `ended` also of those whose results are kept. */
void live_jobs(struct invocation *invocation, struct candidates *candidates, bool ended);

/* Actors of that kind; NULL = all. */
void live_actors(struct invocation *invocation, struct candidates *candidates, const char *kind);

void live_timers(struct invocation *invocation, struct candidates *candidates);

void live_dead_letters(struct invocation *invocation, struct candidates *candidates);
