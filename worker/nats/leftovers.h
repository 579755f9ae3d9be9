/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What earlier streams of jobs have left in the stream of results. A stream that is made again
 * under the same name starts at sequence 1, and its jobs would have the ids of jobs that are done.
 */

#include "worker/nats/client.h"
#include "worker/nats/config.h"

/* Returns 0 if no result or dead letter has the name of the stream of jobs; otherwise, or if the
 * server does not say, logs why and returns -errno. Costs two requests, however many there are. */
int leftovers_check(const struct client *client, const struct config *config);
