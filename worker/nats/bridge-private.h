/* SPDX-License-Identifier: MIT */
#pragma once

/* The interface between the files of the bridge. */

#include "worker/nats/bridge.h"

/* ---- bridge-supervisor.c: jobs ---- */

/* Has bridge_submit() look for jobs of earlier deliveries of the message first. */
void bridge_seek(struct flight *flight);
/* Submits the job of a message, or asks for its end. */
void bridge_submit(struct bridge *bridge, struct flight *flight, usec_t now);
/* Takes the ends and refusals of jobs. */
void bridge_take_results(struct bridge *bridge, usec_t now);
/* The connection to the supervisor is over, because of `error`: nothing is possible any more. */
void bridge_lose_supervisor(struct bridge *bridge, int error);
/* As availability_fn. */
void bridge_on_availability(void *userdata, bool up, const char *cause);
/* Asks the supervisor about all jobs that it has; the engine hears of those in progress. */
void bridge_ask_about_all(struct bridge *bridge);
/* Gives back what the supervisor has no room for. */
void bridge_give_back_held(struct bridge *bridge);
/* Logs how many messages could not be jobs besides those that are logged. Returns when to call it
 * again. */
usec_t bridge_serve_refusals(struct bridge *bridge, usec_t now);
/* Tries held messages again if it is time, and gives back those that wait too long. Returns when to
 * call it again. */
usec_t bridge_serve_held(struct bridge *bridge, usec_t now);

/* ---- bridge-inquiry.c ---- */

/* As inquiry_fn. */
enum inquiry_step bridge_on_inquiry(void *userdata, struct flight *flight, enum inquiry_step step,
                                    struct troupe_query *query);

/* ---- bridge-adopt.c ---- */

/* Puts jobs that the supervisor has of an earlier run into flight. Waits for its answers. */
void bridge_adopt(struct bridge *bridge);

/* ---- bridge-engine.c: messages ---- */

/* Takes what the engine has sent. Returns when to call it again. */
usec_t bridge_take_messages(struct bridge *bridge, usec_t now);
/* Tells the engine of messages in progress whose time has come. Returns when to call it again. */
usec_t bridge_beat(struct bridge *bridge, usec_t now);
/* Ends the time in which messages may look like answers. Returns when to call it again. */
usec_t bridge_serve_guard(struct bridge *bridge, usec_t now);
/* Lets another machine have the message, and forgets it. At once if this machine takes none now, or
 * has not had it before: otherwise after a pause, as it may well come here again. */
void bridge_give_back(struct bridge *bridge, struct flight *flight);
/* Like bridge_give_back(), but for lack of room for the message's key: the pause grows with the
 * number of such messages. */
void bridge_give_back_full(struct bridge *bridge, struct flight *flight, usec_t now);
/* Has the server deliver the message again after that time, and forgets it. */
void bridge_put_off(struct bridge *bridge, struct flight *flight, usec_t pause);

/* ---- bridge-consumer.c: the consumer ---- */

/* Signs of life within AckWait. */
#define BRIDGE_BEATS 3

/* Asks the server for it; the answer is for bridge_note_consumer(). */
void bridge_ask_for_consumer(struct bridge *bridge, usec_t now);
/* Does that when it is time. Returns when to call it again. */
usec_t bridge_serve_consumer(struct bridge *bridge, usec_t now);
/* Has that done within some seconds, as something is odd about it. */
void bridge_check_consumer_soon(struct bridge *bridge, usec_t now);
/* An answer to that with this token; or to somebody else, who can have the server answer here. */
void bridge_note_consumer(struct bridge *bridge, const char *token, natsMsg *answer, usec_t now);
/* Nobody is there to answer. */
void bridge_note_no_consumer(struct bridge *bridge, usec_t now);
/* The consumer has answered something. */
void bridge_note_answered(struct bridge *bridge);
/* Requests for messages may end without any: asks then whether there are some, and nudges a
 * consumer that keeps them. Returns when to call it again. */
usec_t bridge_ask_for_messages(struct bridge *bridge, uint64_t room, usec_t now);
/* A message has come. */
void bridge_end_stall(struct bridge *bridge);
/* Leaves a server over which the consumer does not answer. Returns when to call it again. */
usec_t bridge_serve_silence(struct bridge *bridge, usec_t now);

/* ---- bridge-publish.c: results and dead letters ---- */

/* Publishes what the state of the flight asks for, or ends the flight if that is not wanted. */
void bridge_publish(struct bridge *bridge, struct flight *flight, usec_t now);
/* The next bridge_serve_unconfirmed() publishes all again that is not confirmed. */
void bridge_publish_soon(struct bridge *bridge);
/* Publishes again what was not confirmed in time, and asks for what is in doubt. Returns when to
 * call it again. */
usec_t bridge_serve_unconfirmed(struct bridge *bridge, usec_t now);
/* An answer to either. */
void bridge_note_confirmation(struct bridge *bridge, const char *token, natsMsg *answer,
                              usec_t now);
void bridge_note_unpublished(struct bridge *bridge, const char *problem);
/* Asks whether what was published of a flight that is done is stored. Returns false if that is
 * nothing. */
bool bridge_doubt(struct bridge *bridge, struct flight *flight, usec_t now);

/* ---- bridge-done.c: acknowledgements ---- */

/* Queues the acknowledgement of the flight's message. The job's result must be stored. */
void bridge_conclude(struct bridge *bridge, struct flight *flight);
/* Acknowledges again: no confirmation came, and the result was found stored. May forget the
 * flight. */
void bridge_conclude_again(struct bridge *bridge, struct flight *flight, usec_t now);
/* Sends the acknowledgements of this turn. */
void bridge_acknowledge(struct bridge *bridge);
/* The engine has confirmed some, with this token: forgets their flights. */
void bridge_note_acknowledged(struct bridge *bridge, const char *token);

/* ---- both sides ---- */

/* Returns a number that nobody can guess, even from earlier ones. */
uint64_t bridge_new_secret(void);
/* Whether this machine gives all up for now. */
static inline bool bridge_rests(const struct bridge *bridge)
{
    return bridge->stopping || bridge->availability.down || bridge->quiet_until > 0;
}
/* Lets the engine know when that changes. Before messages are given back, so that they go to other
 * machines. */
void bridge_listen(struct bridge *bridge);
/* Too much waits here for other machines to wait, too: takes no messages until a job ends, or for a
 * moment. */
void bridge_quieten(struct bridge *bridge, usec_t now);
/* Says in the service's status what is going on. */
void bridge_tell(struct bridge *bridge);
/* How many jobs have ended and are not stored by the engine yet. */
uint64_t bridge_unpublished(const struct bridge *bridge);
