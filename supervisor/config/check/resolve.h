/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Resolves a configuration on this machine: users, groups, programs on the PATH, files. A missing
 * item prevents only its own group from starting, and a retry may find it.
 */

#include "supervisor/config/config.h"
#include "supervisor/config/names/names.h"

/* Collects the names that config_resolve() needs. Returns 0 or -ENOMEM. */
int config_want_names(const struct config *config, struct names *names);
int config_want_group_names(const struct config_group *group, struct names *names);

/*
 * Completes each group, or sets group->fault to why it cannot start. Completes each schedule, or
 * marks it as broken. Adds missing items to `faults`. Returns 0 (also with faults of groups),
 * CONFIG_E_INVALID (a schedule is broken) or -ENOMEM.
 */
int config_resolve(struct config *config, const struct names *names,
                   struct config_problems *faults);
int config_resolve_group(struct config_group *group, const struct names *names,
                         struct config_problems *faults);

/* Looks the names up in this process, blocking, and resolves. */
int config_resolve_now(struct config *config, struct config_problems *faults);
