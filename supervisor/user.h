/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the system's user database says, apart from everything else: <grp.h> has a struct group too.
 */

#include "config.h"
#include <stddef.h>
#include <sys/types.h>

/*
 * The supplementary groups of a user, as at login; asks the name service and may block. `*ret` is
 * the caller's (free(3)). 0 or -ENOMEM; for a user without any, or NULL, 0 with `*ret_n` 0.
 */
int user_groups(const char *user, gid_t gid, gid_t **ret, size_t *ret_n);

/*
 * USER, LOGNAME, HOME and SHELL of a user, as systemd sets them for User=. `*ret` is the caller's
 * (strv_free()). 0 or -ENOMEM; NULL for no user, or one that has gone since the configuration was
 * read.
 */
int user_environment(const char *user, config_strv *ret);
