/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Death notices: who watches an actor is told once, with the cause, when it is gone for good or
 * has failed (its workers died too often). A worker's death alone is none: its successor goes on.
 */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include <stdbool.h>
#include <stdint.h>

struct actor;

struct monitor {
    struct list link;     /* in the watched one's list */
    struct list own_link; /* in the watcher's */
    struct index_entry by_monitored;
    struct actor *monitored, *observer;
};

enum {
    _WATCH_E_SUCCESS,
    MONITOR_E_TOO_MANY,
};

/* Twice is once. Who watches what is gone is told at once. 0, MONITOR_E_TOO_MANY or -ENOMEM. */
int monitor_add(struct actor *observer, uint64_t reference);
/*
 * Whether there was one. If not, and the watched one is dead, a notice is or was under way that
 * nobody knows what to do with: a warning, and a dead letter.
 */
bool monitor_remove(struct actor *observer, uint64_t reference);
/* All that this actor watches. */
void monitor_end_all(struct actor *observer);

/* Two watchers swap what they watch, as their workers swap places. */
void monitor_swap_all(struct actor *a, struct actor *b);

/* Tells all that watch it, and ends their watches. */
void monitor_notify(struct actor *monitored, const char *cause);
