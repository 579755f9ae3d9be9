/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Moves messages from an actor's mailbox to the inbox of its worker or client, notes their
 * consumption, and takes back those of a dead worker.
 */

#include "shared/protocol/protocol-actors.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/envelope.h"
#include <stdbool.h>
#include <stdint.h>

struct death;
struct endpoint;
struct protocol_done;
struct ring_record;

/* For actor_class: slots and clients. */
int delivery_to_inbox(struct actor *actor, struct envelope *envelope);
void delivery_feed_inbox(struct actor *actor);
/* For actor_class: pools. */
int delivery_to_pool(struct actor *actor, struct envelope *envelope);
void delivery_feed_pool(struct actor *actor);

/* Puts a message into the mailbox by its policy; takes it over. 0 or ROUTER_E_FULL. */
int delivery_enqueue(struct actor *to, struct envelope *envelope);

/* Sets new, empty rings. */
void delivery_attach(struct actor *actor, struct endpoint *endpoint);
/* Sets rings that a worker of the last supervisor continues to use, and that are not read yet. Its
 * reports about messages that the last supervisor had kept are ignored. */
void delivery_adopt(struct actor *actor, struct endpoint *endpoint);
/* Sets whether the worker or client is ready to read the inbox. */
void delivery_set_up(struct actor *actor, bool up);

/* Holds back the messages for an actor, and releases them. */
void delivery_pause(struct actor *actor);
void delivery_resume(struct actor *actor);

/*
 * Writes a message into the inbox. 0: it is taken over; ENDPOINT_E_FULL: the actor is fed when
 * there is room; or -errno.
 */
int delivery_send(struct actor *actor, struct envelope *envelope);
/* Counts a message that delivery_send() or the fast path has written. */
void delivery_note_sent(struct actor *actor, const struct protocol_message *message);

/*
 * Whether too many answers wait for the actor. Then its outbox is not read until it has read some:
 * the caller returns ENDPOINT_E_FULL.
 */
bool delivery_must_read_first(struct actor *actor);

/*
 * Answers a request with a record of this kind, or reports the end of a job with its result and
 * with the other fields of `done`. Without room, the answer waits in the mailbox; `more` as in
 * endpoint_commit_of_many().
 */
void delivery_answer(struct actor *actor, uint16_t kind, const void *body, uint32_t size);
void delivery_answer_end(struct actor *actor, struct protocol_done *done,
                         const struct payload *result, unsigned more);
/* Like delivery_answer(), but for REFUSED: `error` is an errno, positive; `reason` a sentence. */
void delivery_refuse(struct actor *actor, uint64_t cookie, int error, const char *reason);
/* Answers wait: lets the actor be fed when they have room. Returns false if the peer is gone. */
bool delivery_hold_requests(struct actor *actor);
/* Whether answers wait. Then the outbox is not read until they have been written: the caller
 * returns ENDPOINT_E_FULL. Inline: asked for each request. */
static inline bool delivery_must_answer_first(struct actor *actor)
{
    return !list_empty(&actor->mailbox.answers) && delivery_hold_requests(actor);
}
/* Drops at most `max` answers that wait. Returns whether none is left. */
bool delivery_drop_answers(struct actor *actor, size_t max);

/* For struct endpoint_handler. */
void delivery_on_space(struct actor *actor);
void delivery_on_consumed(struct actor *actor, const struct ring_record *record, uint32_t cursor);

/*
 * Takes the message with this id, which the worker is handling or has stashed; the caller owns it.
 * 0, -EBADMSG (there is none), or -ENOMEM (it is lost and logged, and its ask fails).
 */
int delivery_claim(struct actor *actor, uint64_t id, struct envelope **ret);
/* Handle the records STASHED and UNSTASHED. The errors are those of delivery_claim(). */
int delivery_stash(struct actor *actor, const struct protocol_stash *stash);
int delivery_unstash(struct actor *actor, uint64_t id);

/*
 * Takes the rings from an actor whose worker is dead and whose outbox is read to the end. Messages
 * that the worker had not begun go back to the mailbox in order; messages that it was handling are
 * retried or go to the error queue. Its answers, asks and monitors end. `death` may be NULL.
 */
void delivery_recover(struct actor *actor, struct death *death);

/*
 * A place in a pool is one permanent actor, with any worker. While a place has two workers, the
 * rings, open asks, monitors and stash of the second one (a spare, successor or predecessor) belong
 * to a standby (actor_set_place()). A standby has no address: its messages come from the place, and
 * names and subscriptions belong to the place.
 *
 * delivery_swap() swaps the workers of a standby and its place, with everything that belongs to
 * workers. The place keeps name, reference, subscriptions, timers, observers, pause and waiting
 * messages. Waiting messages go to the new worker immediately, unless the old worker's inbox has
 * earlier messages that it has not begun (with `dying`: not finished). To keep the order, they then
 * wait until the old worker has ended and its messages are back. Call delivery_set_up() for both
 * afterwards.
 */
void delivery_swap(struct actor *standby, bool dying);

/*
 * Whether the inbox has messages for this actor itself, not for its pool, that the worker has not
 * begun; with `begun_too`, also those that it is handling.
 */
bool delivery_has_unhandled(const struct actor *actor, bool begun_too);

/* The number of messages that its workers have consumed; counters.consumed may lag behind. */
uint64_t delivery_consumed(const struct actor *actor);

/* Whether mailbox and inbox are empty. */
bool delivery_is_quiet(const struct actor *actor);

/* A message that its worker was handling, for a death report. */
struct delivery_taken {
    uint64_t id, sender;
    usec_t sent_at;
    struct topic topic; /* points into the inbox, or the stash */
};
/* Lists these messages. Returns their number, at most `max` > 0. Call it before delivery_recover().
 */
size_t delivery_list_in_hand(struct actor *actor, struct delivery_taken *ret, size_t max);
