/* SPDX-License-Identifier: MIT */
#pragma once

/* The interface between the files of the bridge. */

#include "worker/nats/bridge.h"

/* ---- bridge-supervisor.c: jobs ---- */

/* Makes bridge_submit() first look for jobs of earlier deliveries of the message. */
void bridge_seek(struct flight *flight);
/* Submits the message as a job, or waits for the end of its job. */
void bridge_submit(struct bridge *bridge, struct flight *flight, usec_t now);
/* Handles ends and refusals of jobs. */
void bridge_take_results(struct bridge *bridge, usec_t now);
/* Ends the bridge, because the connection to the supervisor has ended with `error`. */
void bridge_lose_supervisor(struct bridge *bridge, int error);
/* Implements availability_fn. */
void bridge_on_availability(void *userdata, bool up, const char *cause);
/* Asks the supervisor about all its jobs, and reports those in progress to the engine. */
void bridge_ask_about_all(struct bridge *bridge);
/* Gives back all held messages. */
void bridge_give_back_held(struct bridge *bridge);
/* Logs the number of refusals that were not logged. Returns when to call it again. */
usec_t bridge_serve_refusals(struct bridge *bridge, usec_t now);
/* Tries held messages again if it is time, and gives back those that wait too long. Returns when to
 * call it again. */
usec_t bridge_serve_held(struct bridge *bridge, usec_t now);

/* Puts jobs that the supervisor has of an earlier run into flight. Waits for its answers. */
void bridge_adopt(struct bridge *bridge);

/* ---- bridge-inquiry.c ---- */

/* Implements inquiry_fn. */
void bridge_on_inquiry(void *userdata, struct flight *flight, enum inquiry_question question,
                       enum inquiry_answer answer, struct troupe_query *query);

/* ---- bridge-engine.c: messages ---- */

/* Handles what the engine has sent. Returns when to call it again. */
usec_t bridge_take_messages(struct bridge *bridge, usec_t now);
/* Reports messages in progress to the engine when they are due. Returns when to call it again. */
usec_t bridge_beat(struct bridge *bridge, usec_t now);
/* Ends the guard when it is time. Returns when to call it again. */
usec_t bridge_serve_guard(struct bridge *bridge, usec_t now);
/* Gives the message to any machine, and forgets it. If this machine takes messages and has already
 * given this one back, a pause comes before, since it is likely to come here again. */
void bridge_give_back(struct bridge *bridge, struct flight *flight);
/* Like bridge_give_back(), but for lack of room for the message's key: the pause grows with the
 * number of such messages. */
void bridge_give_back_full(struct bridge *bridge, struct flight *flight, usec_t now);
/* Makes the server deliver the message again after a pause, and forgets it. */
void bridge_put_off(struct bridge *bridge, struct flight *flight, usec_t pause);

/* ---- both sides ---- */

/* Whether this machine takes no messages now, and gives back those that come. */
static inline bool bridge_takes_nothing(const struct bridge *bridge)
{
    return bridge->stopping || bridge->availability.down || bridge->paused_until > 0;
}
/* Tells the engine when that changes. Call it before messages are given back, so that they go to
 * other machines. */
void bridge_listen(struct bridge *bridge);
/* Takes no messages until a job ends, or for some seconds: other machines may have room. */
void bridge_pause(struct bridge *bridge, usec_t now);
/* Updates the status of the service. */
void bridge_tell(struct bridge *bridge);
/* Returns the number of jobs that have ended and whose results the engine has not stored yet. */
uint64_t bridge_unpublished(const struct bridge *bridge);
