/* SPDX-License-Identifier: MIT */
#pragma once

/* Checks required keys and combinations of keys. Problems go to the drafts of the groups. */

#include "supervisor/config/config.h"
#include <stddef.h>

/* Checks a group by itself, and rounds its sizes. Returns 0 (also with new problems) or -ENOMEM. */
int config_check_group(struct config_group *group);

/*
 * Checks After= and OnOom= of groups, which are sorted by name. `alone`: there is a single group;
 * the others are files beside its own or in CONFIG_DIRECTORY, and are not read. Returns 0 (also
 * with new problems) or -ENOMEM.
 */
int config_check_references(struct config_group *const *groups, size_t n_groups, bool alone);

/* Checks Uses= of all groups against the limits, of which none may be broken. Returns as above. */
int config_check_uses(const struct config *config);

/* Checks Group= of all schedules against the groups. `alone`: as of config_check_references(); then
 * only the name of the group is checked. Returns as above. */
int config_check_schedules(const struct config *config, bool alone);

/* Writes the given keys that have no effect in a group of this type, such as "Prefetch=,
 * QueueMax=", cut to `size` bytes. Returns how many there are. They are no mistakes: drop-ins may
 * give them for groups of all types. */
size_t config_idle_keys(const struct config_group *group, char *buffer, size_t size);
