/* SPDX-License-Identifier: MIT */
#pragma once

/* Turns the keys of [Sandbox] into what a new process applies. */

#include "supervisor/config/config-group.h"
#include "supervisor/config/names/names.h"
#include "supervisor/config/sandbox/call-set.h"
#include "supervisor/keeper/sandbox-network.h"
#include "supervisor/keeper/sandbox.h"

/* Adds the filter, if it is to be compiled, which takes milliseconds, to what is looked up.
 * Returns 0 or -ENOMEM. */
int sandbox_want(const struct config_group *group, struct names *names);

/*
 * The group's user is resolved, and `names` has what sandbox_want() asked for. Sets `*ret` to NULL
 * if the group has no such key; sandbox_free() ends it. Returns 0, -ETIMEDOUT if the filter was not
 * compiled in time, or -errno.
 */
int sandbox_compile(const struct config_group *group, const struct names *names,
                    struct sandbox **ret);
/* The calls of SystemCallLog= of a compiled sandbox; borrowed. */
const struct call_set *sandbox_logged_calls(const struct sandbox *sandbox);
struct sandbox *sandbox_free(struct sandbox *sandbox); /* NULL allowed; returns NULL */

/* Makes the storage for a network that the processes of a group share. Returns 0 or -errno. */
int network_new(struct sandbox_network **ret);
struct sandbox_network *network_free(struct sandbox_network *network); /* NULL allowed, returned */
