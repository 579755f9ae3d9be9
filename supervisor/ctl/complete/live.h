/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Names of what exists now, from the supervisor that the options of the invocation name. All
 * functions print what it answers within --timeout, by default half a second, and no errors.
 */

#include <stdbool.h>

struct candidates;
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
