/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Actors that only hand messages on: groups with Cells=by-key, and exchanges. Messages wait in
 * their mailbox while they are paused, and for the turns it takes to hand on what has waited.
 */

#include <stdbool.h>

struct actor;
struct envelope;
struct topic;

/* For actor_class. */
int forward_deliver(struct actor *actor, struct envelope *envelope);
void forward_feed(struct actor *actor);
/* Hands a message on to the one actor that class->resolve() finds. */
int forward_to_resolved(struct actor *actor, struct envelope *envelope);

/* In whose mailbox a message of this topic for `to` would wait; NULL = in none, or in several. */
struct actor *forward_find_mailbox(struct actor *to, const struct topic *topic);
