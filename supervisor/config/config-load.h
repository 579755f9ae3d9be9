/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads single files of a directory: troupe.conf, groups, and exchanges, which share one namespace
 * with groups. */

#include "supervisor/config/config.h"

#define CONFIG_GROUP_SUFFIX  ".group"
#define CONFIG_DROPIN_SUFFIX ".conf"

/*
 * Reads and checks a group's file and drop-ins. Returns 0 with `*ret` (NULL for an invalid name),
 * or -errno.
 */
int config_read_group(const char *path, struct config_problems *problems,
                      struct config_group **ret);

/* Reads troupe.conf into a zeroed config. Returns 0 or -errno (-ENOENT, with the defaults set). */
int config_read_daemon(const char *path, struct config_problems *problems, struct config *config);
