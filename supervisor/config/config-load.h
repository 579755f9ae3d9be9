/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Internal interface between config-load.c, which reads a whole directory, and check/verify.c,
 * which reads single files.
 */

#include "supervisor/config/keys/draft.h"

#define CONFIG_GROUP_SUFFIX  ".group"
#define CONFIG_DROPIN_SUFFIX ".conf"

/*
 * Reads a group's file and drop-ins without checking them. Returns 0 with `*ret` (NULL for an
 * invalid name), or -errno. End `draft` in any case.
 */
int config_read_group(struct config_draft *draft, struct config_problems *problems,
                      const char *path, struct config_group **ret);

/* Checks a group that was read. Returns 0 or -errno. */
int config_check_read(struct config_draft *draft, struct config_group *group);

/* 0 or -errno; -ENOENT if there is no such file. `draft` is to be ended in any case. */
int config_read_daemon(struct config_draft *draft, struct config_daemon *daemon, const char *path,
                       struct config_problems *problems);
