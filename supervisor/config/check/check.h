/* SPDX-License-Identifier: MIT */
#pragma once

/* Checks required keys and combinations of keys. Problems go to the drafts of the groups. */

#include "supervisor/config/config.h"
#include <stddef.h>

/* Also rounds sizes. Returns 0 (also with new problems) or -ENOMEM. */
int config_check_group(struct config_group *group);

/*
 * After= and OnOom= of groups, sorted by name, to each other. `alone`: of a single group, whose
 * others are files beside its own or in CONFIG_DIRECTORY, and are not read. Returns 0 (also with
 * new problems) or -ENOMEM.
 */
int config_check_references(struct config_group *const *groups, size_t n_groups, bool alone);

/* Writes the given keys that have no effect in a group of this type, such as "Prefetch=,
 * QueueMax=", cut to `size` bytes. Returns how many there are. They are no mistakes: drop-ins may
 * give them for groups of all types. */
size_t config_idle_keys(const struct config_group *group, char *buffer, size_t size);
