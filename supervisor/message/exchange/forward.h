/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Actors that only forward messages: exchanges, and groups with Cells=by-key. Messages wait in
 * their mailbox while they are paused, and until earlier messages are forwarded.
 */

#include <stdbool.h>
#include <stdint.h>

struct actor;
struct envelope;
struct topic;

/* How many exchanges a message may pass through; more mean a loop. */
#define FORWARD_HOPS_MAX 8u

struct message_context;

/* For actor_class.hand_on: how much work is left in this turn, in copies, and counts work, which
 * may exceed that. A hand_on that does not finish puts the message back at the front of its actor's
 * mailbox. */
uint64_t forward_cost_left(const struct message_context *context);
void forward_spend(struct message_context *context, uint64_t cost);

/* For actor_class. */
int forward_deliver(struct actor *actor, struct envelope *envelope);
void forward_feed(struct actor *actor);
/* Forwards a message to the one actor that class->resolve() finds. */
int forward_to_resolved(struct actor *actor, struct envelope *envelope);

/*
 * Overflow=block: whether a message for `to` must wait for room in its one mailbox. Then `sender`
 * is blocked until it may try again.
 */
bool forward_must_wait(struct actor *sender, struct actor *to, const struct topic *topic,
                       uint64_t bytes);

/* Like forward_must_wait(), which also calls this, but for an exchange that makes copies, and is
 * behind with them. */
bool forward_must_wait_for_copies(struct actor *sender, struct actor *to);
