/* SPDX-License-Identifier: MIT */
#pragma once

/* Checks required keys and combinations of keys. Problems go to the draft. */

#include "supervisor/config/keys/draft.h"

/* Checks, and rounds sizes. 0 (also with new problems) or -errno. */
int config_check_group(struct config_draft *draft, struct config_group *group);

/*
 * After= between the groups of a whole configuration, sorted by name: each one named exists, and
 * none waits for itself. drafts[i] is the one of groups[i]. 0 or -ENOMEM.
 */
int config_check_after(struct config_draft *drafts, struct config_group *const *groups,
                       size_t n_groups);

/* After= of a single file, whose neighbours are files in its directory or in CONFIG_DIRECTORY. */
int config_check_after_beside(struct config_draft *draft, const struct config_group *group,
                              const char *directory);
