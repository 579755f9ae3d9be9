/* SPDX-License-Identifier: MIT */
#pragma once

/* The interface between the files of the bridge. */

#include "worker/nats/bridge.h"

/* ---- bridge-supervisor.c: jobs ---- */

/* Submits the job of a message, or asks for its end. */
void bridge_submit(struct bridge *bridge, struct flight *flight, usec_t now);
/* Takes the ends and refusals of jobs. */
void bridge_take_results(struct bridge *bridge, usec_t now);
/* The connection to the supervisor is over, because of `error`: nothing is possible any more. */
void bridge_lose_supervisor(struct bridge *bridge, int error);
/* As inquiry_fn. */
void bridge_on_inquiry(void *userdata, struct flight *flight, struct troupe_query *query);
/* Tries held messages again if it is time, and gives back those that wait too long. */
void bridge_serve_held(struct bridge *bridge, usec_t now);

/* ---- bridge-engine.c: messages ---- */

/* Takes what the engine has sent. */
void bridge_take_messages(struct bridge *bridge, usec_t now);
/* Publishes what the state of the flight asks for. */
void bridge_publish(struct bridge *bridge, struct flight *flight, usec_t now);
/* Publishes again what was not confirmed in time. Returns when to call it again. */
usec_t bridge_serve_unconfirmed(struct bridge *bridge, usec_t now);
/* Tells the engine of messages in progress whose time has come. Returns when to call it again. */
usec_t bridge_beat(struct bridge *bridge, usec_t now);
/* Lets another machine have the message after a pause, and forgets it. */
void bridge_give_back(struct bridge *bridge, struct flight *flight, usec_t pause);
