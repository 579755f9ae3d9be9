/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Stand-ins: actors for workers that are beside the pool. A place in a pool is one actor for good,
 * whichever worker is in it. While a place has two workers (one and its successor or spare, or one
 * and its predecessor that finishes what it has in hand), the second one's rings, open asks,
 * monitors and stash belong to a stand-in. Nobody can address a stand-in: what its worker sends
 * comes from the place, what it registers or subscribes belongs to the place.
 */

#include <stdbool.h>

struct actor;

/* `actor` stands in at `place` from now on; NULL = no more. */
void stand_in_set(struct actor *actor, struct actor *place);

/*
 * The worker of a stand-in and that of its place swap roles, with all that belongs to workers. What
 * belongs to the place stays: name, reference, subscriptions, timers, monitors of it, pause, and
 * the messages that wait. They go to the new worker at once, with one exception, to keep their
 * order: if the old worker's inbox has earlier messages that it has not begun, they wait for its
 * end, which brings those back. `dying` = what it has begun comes back, too. Afterwards both are to
 * be told whether they are up (delivery_set_up()).
 */
void stand_in_swap(struct actor *stand_in, bool dying);

/* The stand-in's worker has ended, and what it had not handled is back at the place. */
void stand_in_release(struct actor *stand_in);

/* The place goes away: its stand-ins are on their own. */
void stand_in_forget_place(struct actor *place);
