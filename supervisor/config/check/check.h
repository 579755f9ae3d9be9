/* SPDX-License-Identifier: MIT */
#pragma once

/* Checks required keys and combinations of keys. Problems go to the drafts of the groups. */

#include "supervisor/config/config.h"
#include <stddef.h>

/* Also rounds sizes. Returns 0 (also with new problems) or -ENOMEM. */
int config_check_group(struct config_group *group);

/*
 * After= between the groups of a whole configuration, sorted by name: each one named exists, and
 * none waits for itself. Returns 0 or -ENOMEM.
 */
int config_check_after(struct config_group *const *groups, size_t n_groups);

/*
 * OnOom= between the groups of a whole configuration, sorted by name: the group that is named takes
 * the jobs of the one that names it. Returns 0 or -ENOMEM.
 */
int config_check_oom(struct config_group *const *groups, size_t n_groups);

/* After= of a single file, whose neighbours are files beside it or in CONFIG_DIRECTORY. */
int config_check_after_beside(const struct config_group *group);

/* Like config_check_after_beside(), but for OnOom=. Does not look at the other group's type. */
int config_check_oom_beside(const struct config_group *group);

/* Writes the given keys that have no effect in a group of this type, such as "Prefetch=,
 * QueueMax=", cut to `size` bytes. Returns how many there are. */
size_t config_idle_keys(const struct config_group *group, char *buffer, size_t size);
