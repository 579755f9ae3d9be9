/* SPDX-License-Identifier: MIT */
#pragma once

/* Interface between sandbox-files-list.c, which lists paths, and sandbox-files.c, which confines a
 * process to them. */

#include "supervisor/keeper/sandbox-files.h"
#include "supervisor/keeper/sandbox-mount.h"

struct entry {
    const struct sandbox_path *from;
    const char *path; /* without symbolic links */
    bool read_only;   /* in addition to its kind */
    int tree;         /* what is to be attached there, or -1 */
};

/* Lists the paths that count, as they are now. Returns as sandbox_files_apply(). */
int sandbox_files_list(const struct sandbox_files *files, const struct sandbox_path **ret_path);

/* Returns how many are listed; `*ret` is sorted, and static. */
size_t sandbox_files_listed(struct entry **ret);

/* A path with symbolic links in it, and where it leads. */
struct sandbox_link {
    const char *from, *to;
};

/* Returns how many paths of the list are such; `*ret` is static. */
size_t sandbox_files_links(const struct sandbox_link **ret);
