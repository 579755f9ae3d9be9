/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Standbys: actors for workers beside a pool. A place in a pool is one actor for good, whichever
 * worker is in it. While a place has two workers (one and its successor, or one and a predecessor
 * that finishes what it has in hand), the rings, open asks, monitors and stash of the second worker
 * belong to a standby (actor_set_place()). A standby has no address: what its worker sends comes
 * from the place, what it registers or subscribes belongs to the place.
 */

#include <stdbool.h>

struct actor;

/*
 * The worker of a standby and that of its place swap roles, with everything that belongs to
 * workers. The place keeps its name, reference, subscriptions, timers, observers, pause, and the
 * messages that wait. Those go to the new worker at once, unless the old worker's inbox has earlier
 * ones that it has not begun: to keep the order they then wait until the old worker has ended,
 * which brings those back. `dying` = what the old worker has begun comes back, too. The caller
 * tells both afterwards whether they are up (delivery_set_up()).
 */
void standby_actor_swap(struct actor *standby, bool dying);
