/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Death notices: who watches an actor is told once, with the cause, when it is gone for good or
 * has failed (its workers died too often). A worker's death alone is none: its successor goes on.
 */

#include "shared/index.h"
#include "shared/list.h"
#include <stdbool.h>
#include <stdint.h>

struct actor;

struct watch {
    struct list link;     /* in the watched one's list */
    struct list own_link; /* in the watcher's */
    struct index_entry by_watched;
    struct actor *watched, *watcher;
};

enum {
    _WATCH_E_SUCCESS,
    WATCH_E_TOO_MANY,
};

/* Twice is once. Who watches what is gone is told at once. 0, WATCH_E_TOO_MANY or -ENOMEM. */
int watch_add(struct actor *watcher, uint64_t reference);
/*
 * Whether there was one. If not, and the watched one is dead, a notice is or was under way that
 * nobody knows what to do with: a warning, and a dead letter.
 */
bool watch_remove(struct actor *watcher, uint64_t reference);
/* All that this actor watches. */
void watch_drop_all(struct actor *watcher);

/* Two watchers swap what they watch, as their workers swap places. */
void watch_swap_all(struct actor *a, struct actor *b);

/* Tells all that watch it, and ends their watches. */
void watch_tell(struct actor *watched, const char *cause);
