/* SPDX-License-Identifier: MIT */
#pragma once

/* Turns the keys of [Sandbox] about files into what a new process applies. */

#include "supervisor/config/config-group.h"
#include "supervisor/keeper/sandbox-files.h"

/* Sets `*ret` to NULL if the group has no such key; files_free() ends it. Its paths are borrowed
 * from the group, or its own. Returns 0, -ENOMEM, or -E2BIG (more than SANDBOX_PATHS_MAX). */
int files_compile(const struct config_group *group, struct sandbox_files **ret);
struct sandbox_files *files_free(struct sandbox_files *files); /* NULL allowed; returns NULL */

/* The key of the group's file that lists such a path, such as "ReadOnlyPaths=". */
const char *files_key(const struct config_group *group, const struct sandbox_path *path);

/* Which key of [Sandbox] hides this program from the process that is to execute it, such as
 * "PrivateTmp=", with `*ret_path` = what it hides; NULL = none. Looks at the paths as they are
 * written: it misses what symbolic links hide, and finds nothing that works. */
const char *files_hiding_key(const struct config_group *group, const struct sandbox_files *files,
                             const char *program, const char **ret_path);
