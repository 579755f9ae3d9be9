/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a configuration means on this machine: users and groups as numbers, programs on the PATH,
 * environment files read. Whatever is missing keeps its own group from being started, and nobody
 * else; it may be there the next time.
 */

#include "supervisor/config/keys/draft.h"
#include "supervisor/config/names/names.h"

/* The names that config_resolve() needs. 0 or -ENOMEM. */
int config_want_names(const struct config *config, struct names *names);
int config_want_group_names(const struct config_group *group, struct names *names);

/*
 * Completes every group, and notes in group->fault why one cannot be started. What is missing goes
 * to `faults`, with file and line. 0 (also with faults) or -ENOMEM.
 */
int config_resolve(struct config *config, const struct names *names,
                   struct config_problems *faults);
int config_resolve_group(struct config_group *group, const struct names *names,
                         struct config_problems *faults);
