/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Monitors: an observer is notified once, with the cause, when the monitored actor is permanently
 * gone or has failed (its workers died too often). The death of a worker that has a successor does
 * not count.
 */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include <stdbool.h>
#include <stdint.h>

struct actor;

struct monitor {
    struct list link;     /* in the monitored actor's list */
    struct list own_link; /* in the observer's */
    struct index_entry by_monitored;
    struct actor *monitored, *observer;
};

enum {
    _MONITOR_E_SUCCESS,
    MONITOR_E_TOO_MANY, /* ACTOR_MONITORS_MAX */
};

/* Idempotent. If the actor is gone or has failed, the notice is sent immediately. 0, MONITOR_E_*,
 * or -ENOMEM. */
int monitor_add(struct actor *observer, uint64_t reference);
/*
 * False if there was none. If the other actor is dead, the observer gets or has got a notice that
 * it does not expect: this logs a warning and makes a dead letter of the notice.
 */
bool monitor_remove(struct actor *observer, uint64_t reference);
/* Ends all monitors of an observer. */
void monitor_end_all(struct actor *observer);
/* Swaps the monitors of two observers whose workers swap places. */
void monitor_swap_all(struct actor *a, struct actor *b);

/* Notifies all observers, and ends their monitors. */
void monitor_notify(struct actor *monitored, const char *cause);
