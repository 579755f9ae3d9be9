/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Names of what exists now, from the supervisor that the options of the invocation name. All
 * functions print what it answers within --timeout, by default half a second, and no errors.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * The words that a shell offers. Each candidate is printed as a line: the whole word, a tab, and a
 * description, which may be empty.
 */

/* A user would not read more. */
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

/* ---- names of what exists ---- */

struct invocation;

enum live_targets {
    LIVE_GROUPS = 1 << 0,
    LIVE_CELLS = 1 << 1,
    LIVE_WORKERS = 1 << 2,
};

/* Groups, cells and workers: any of enum live_targets. */
void live_targets(struct invocation *invocation, struct candidates *candidates, unsigned which);

/* A list of which each item is offered. */
struct live_list {
    const char *method, *array;
    const char *name;       /* the member that is offered: text or a number */
    const char *about;      /* the member that describes it */
    const char *parameters; /* of the call, as JSON */
};

void live_list(struct invocation *invocation, struct candidates *candidates,
               const struct live_list *list);
