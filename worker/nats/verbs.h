/* SPDX-License-Identifier: MIT */
#pragma once

/* What troupe-nats does besides `serve`. Functions return an exit status of client.h. */

#include "worker/nats/client.h"
#include "worker/nats/config.h"

/*
 * Makes the stream of jobs, that of results, the consumer of the group, and the bucket of
 * bucket.h; leaves those alone that exist.
 */
int setup(const struct config *config);

/*
 * Prints all machines as a table, or with `json` {"machines": […]} by name, each
 * {"name": …, "state": …, "seen_at": …, "version": …, "groups": […], "bridges": {GROUP: STATE}}. A
 * state is "up", "stopped" or "dead"; groups are as in bucket.h, and absent unless the machine
 * is up. CLIENT_FAILED: a machine is dead, or a group is in trouble.
 */
int cluster_show(const struct config *config, bool json);

/* Removes a machine that is not up. */
int cluster_forget(const struct config *config, const char *machine);
