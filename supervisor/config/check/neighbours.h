/* SPDX-License-Identifier: MIT */
#pragma once

/* Keys of a group that name other groups. */

#include "supervisor/config/config.h"
#include <stddef.h>

/* The groups of a whole configuration, sorted by name. */
struct neighbours {
    struct config_group *const *groups;
    size_t n_groups;
};

#define NEIGHBOURS_NONE SIZE_MAX

/* Returns the number of the group, or NEIGHBOURS_NONE. */
size_t neighbours_find(const struct neighbours *neighbours, const char *name);

/* Checks that `name`, a value of `key`, is one of them, or else suggests the nearest. Returns 0
 * (also with a new problem) or -ENOMEM. */
int neighbours_check(const struct neighbours *neighbours, const struct config_group *group,
                     const char *key, const char *name);

/* Like neighbours_check(), but for a single file, whose neighbours are files beside it or in
 * CONFIG_DIRECTORY. `*ret`: whether it exists. */
int neighbours_check_beside(const struct config_group *group, const char *key, const char *name,
                            bool *ret);
