/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Between an actor's mailbox and the inbox of whoever fills its place: feeding, knowing what was
 * consumed, finding a message in the inbox again, and taking everything back when a worker has
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

/* New rings, nothing in them; then whether somebody is ready to read them. */
void delivery_attach(struct actor *actor, struct endpoint *endpoint);
void delivery_set_up(struct actor *actor, bool up);

/* Whether messages may go to its worker now; answers go to it whenever it has rings. */
bool delivery_takes_messages(const struct actor *actor);

/* Whether a message may be written to its inbox at once: nothing is before it. */
bool delivery_is_direct(const struct actor *actor);

/*
 * Writes a message into the inbox. 0 and it is taken over (also out of its mailbox), or
 * ENDPOINT_E_FULL (the actor is fed once there is room), or -errno.
 */
int delivery_send(struct actor *actor, struct envelope *envelope);

/* A message was written into its inbox: by delivery_send(), or past it. */
void delivery_note_sent(struct actor *actor, const struct protocol_message *message);

/* An answer for the worker or client of now; taken over. */
void delivery_answer(struct actor *actor, struct envelope *envelope);

/* So many answers wait for it that it may cause no more before it has read some: its reading is to
 * be held up (ENDPOINT_E_FULL), and goes on by itself. */
bool delivery_must_read_first(struct actor *actor);

/* Feeds it at the end of this turn, and now. */
void delivery_wake(struct actor *actor);
void delivery_on_turn(struct loop_deferred *deferred);

/* As in struct endpoint_handler. */
void delivery_on_space(struct actor *actor);
void delivery_on_consumed(struct actor *actor, const struct ring_record *record, uint32_t cursor);

/*
 * The message with this id that its worker has in hand or has stashed. The caller owns it; nothing
 * of it is left here. 0, -EBADMSG (it has no such message), or -ENOMEM (it is lost, which the log
 * says and who asked learns).
 */
int delivery_claim(struct actor *actor, uint64_t id, struct envelope **ret);

/* STASHED and UNSTASHED. As above. */
int delivery_stash(struct actor *actor, const struct protocol_stash *stash);
int delivery_unstash(struct actor *actor, uint64_t id);

/*
 * Its worker is dead and its outbox read to the end: what it had not consumed waits for the next
 * one, in order; what it had in hand is retried or goes to the error queue (`death` may be NULL).
 * Answers, open asks and watches end with it. The rings may go afterwards.
 */
void delivery_recover(struct actor *actor, struct death *death);

/*
 * Whether its inbox has messages sent to it, and not to its pool, that its worker has not begun to
 * handle; with `begun_too` also what it has in hand.
 */
bool delivery_has_unhandled(const struct actor *actor, bool begun_too);

/*
 * How many messages its workers have consumed. counters.consumed lags behind: consumption is
 * noticed when there is a reason to look.
 */
uint64_t delivery_consumed(const struct actor *actor);

/* Nothing waits for it and nothing is in its inbox. */
bool delivery_is_quiet(const struct actor *actor);

/* The last messages its worker took, the newest first, as death reports list them. */
struct delivery_taken {
    uint64_t id, sender;
    usec_t sent_at;
    struct topic topic; /* points into the inbox */
    bool in_hand;
};
/* At most `max`; their number. Before delivery_recover(). */
size_t delivery_flight_recorder(struct actor *actor, struct delivery_taken *ret, size_t max);
