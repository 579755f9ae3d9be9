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

/* Puts jobs that the supervisor has of an earlier run into flight. Waits for its answers. */
void bridge_adopt(struct bridge *bridge);

/* ---- bridge-inquiry.c ---- */

/* As inquiry_fn. */
void bridge_on_inquiry(void *userdata, struct flight *flight, enum inquiry_question question,
                       enum inquiry_answer answer, struct troupe_query *query);

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

/* ---- both sides ---- */

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
