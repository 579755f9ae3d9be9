/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Standby actors. A place in a pool is one permanent actor, with any worker. While a place has two
 * workers, the rings, open asks, monitors and stash of the second one (a spare, successor or
 * predecessor) belong to a standby (actor_set_place()). A standby has no address: its messages come
 * from the place, and names and subscriptions belong to the place.
 */

#include <stdbool.h>

struct actor;

/*
 * Swaps the workers of a standby and its place, with everything that belongs to workers. The place
 * keeps name, reference, subscriptions, timers, observers, pause and waiting messages. Waiting
 * messages go to the new worker immediately, unless the old worker's inbox has earlier messages
 * that it has not begun (with `dying`: not finished). To keep the order, they then wait until the
 * old worker has ended and its messages are back. Call delivery_set_up() for both afterwards.
 */
void standby_actor_swap(struct actor *standby, bool dying);
