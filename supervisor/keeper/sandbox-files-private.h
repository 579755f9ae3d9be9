/* SPDX-License-Identifier: MIT */
#pragma once

/* Interface between sandbox-files.c, which confines with mounts, and sandbox-landlock.c. */

#include "supervisor/keeper/sandbox-files.h"

struct entry {
    const struct sandbox_path *from;
    const char *path; /* without symbolic links */
    bool read_only;   /* as well */
    int tree;         /* what is to be attached there, or -1 */
};

/* Lists the paths that count, as they are now. Returns as sandbox_files_apply(). */
int sandbox_files_list(const struct sandbox_files *files, const struct sandbox_path **ret_path);

/* Returns how many are listed; `*ret` is sorted, and static. */
size_t sandbox_files_listed(const struct entry **ret);
