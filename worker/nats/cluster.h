/* SPDX-License-Identifier: MIT */
#pragma once

/* What machines have said about themselves; see bucket.h. Functions return a status of client.h. */

#include "worker/nats/client.h"
#include "worker/nats/config.h"

/*
 * Prints all machines as a table, or {"machines": […]} by name, each
 * {"name": …, "state": …, "seen_at": …, "version": …, "groups": […], "bridges": {GROUP: STATE}}. A
 * state is "up", "stopped" or "dead"; groups are as in BUCKET_STATE, and absent unless the machine
 * is up. CLIENT_FAILED: a machine is dead, or a group is in trouble.
 */
int cluster_show(const struct config *config, const struct output *output);

/* Removes a machine that is not up. */
int cluster_forget(const struct config *config, const char *machine);
