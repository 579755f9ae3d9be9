/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Moves messages from the mailbox of an actor to the inbox of the worker or client that fills it,
 * notes what was consumed, finds messages in the inbox again, and takes them back when a worker has
 * died.
 */

#include "shared/protocol/protocol-actors.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/envelope.h"
#include <stdbool.h>
#include <stdint.h>

struct death;
struct endpoint;
struct ring_record;

/* For actor_class: slots and clients. */
int delivery_to_inbox(struct actor *actor, struct envelope *envelope);
void delivery_feed_inbox(struct actor *actor);
/* For actor_class: pools. */
int delivery_to_pool(struct actor *actor, struct envelope *envelope);
void delivery_feed_pool(struct actor *actor);

/* Into the mailbox by its policy; takes the message over. 0 or ROUTER_E_FULL. */
int delivery_enqueue(struct actor *to, struct envelope *envelope);

/* Sets new and empty rings; and whether somebody is ready to read them. */
void delivery_attach(struct actor *actor, struct endpoint *endpoint);
void delivery_set_up(struct actor *actor, bool up);

/* Holds back the messages for an actor, and lets them go on. */
void delivery_pause(struct actor *actor);
void delivery_resume(struct actor *actor);

/*
 * Writes a message into the inbox. 0: it is taken over; ENDPOINT_E_FULL: the actor is fed once
 * there is room; or -errno.
 */
int delivery_send(struct actor *actor, struct envelope *envelope);
/* A message was written into the inbox, by delivery_send() or by the fast path. */
void delivery_note_sent(struct actor *actor, const struct protocol_message *message);

/*
 * Whether so many answers wait for the actor that it must read some before it may cause more: its
 * outbox is not read until then (return ENDPOINT_E_FULL).
 */
bool delivery_must_read_first(struct actor *actor);

/* For struct endpoint_handler. */
void delivery_on_space(struct actor *actor);
void delivery_on_consumed(struct actor *actor, const struct ring_record *record, uint32_t cursor);

/*
 * Takes the message with this id from what the worker has in hand or has stashed; the caller owns
 * it. 0, -EBADMSG (there is none), or -ENOMEM (it is lost; the log and the asker are told).
 */
int delivery_claim(struct actor *actor, uint64_t id, struct envelope **ret);
/* The records STASHED and UNSTASHED. As above. */
int delivery_stash(struct actor *actor, const struct protocol_stash *stash);
int delivery_unstash(struct actor *actor, uint64_t id);

/*
 * The worker is dead and its outbox is read to the end. What it had not consumed goes back to the
 * mailbox in order; what it had in hand is retried or goes to the error queue (`death` may be
 * NULL). Its answers, asks and monitors end. The rings may be freed afterwards.
 */
void delivery_recover(struct actor *actor, struct death *death);

/*
 * Whether the inbox has messages for this actor itself, not for its pool, whose handling the worker
 * has not begun; with `begun_too`, also what it has in hand.
 */
bool delivery_has_unhandled(const struct actor *actor, bool begun_too);

/* How many messages its workers have consumed; counters.consumed lags behind. */
uint64_t delivery_consumed(const struct actor *actor);

/* Whether nothing waits for it and nothing is in its inbox. */
bool delivery_is_quiet(const struct actor *actor);

/* A message that its worker took, for a death report. */
struct delivery_taken {
    uint64_t id, sender;
    usec_t sent_at;
    struct topic topic; /* points into the inbox */
    bool in_hand;
};
/* The last ones, newest first; at most `max`; their number. Before delivery_recover(). */
size_t delivery_flight_recorder(struct actor *actor, struct delivery_taken *ret, size_t max);
