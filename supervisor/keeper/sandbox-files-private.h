/* SPDX-License-Identifier: MIT */
#pragma once

/* Interface between sandbox-files-list.c, which lists paths, and sandbox-files.c and
 * sandbox-landlock.c, which confine a process to them: with mounts, and with rules. */

#include "supervisor/keeper/sandbox-files.h"
#include "supervisor/keeper/sandbox-mount.h"

struct entry {
    const struct sandbox_path *from;
    const char *path; /* without symbolic links */
    struct mount_identity identity;
    bool read_only;  /* as well */
    bool own;        /* each process has another one; it is not part of a root that is prepared */
    bool inside_own; /* that is so because of an entry above */
    int tree;        /* what is to be attached there, or -1 */
};

/* One that each new root has, listed by nobody. */
bool sandbox_files_is_device(const struct sandbox_path *path);

/* Lists the paths that count, as they are now; without the devices of a new root if that is
 * prepared. Returns as sandbox_files_apply(). */
int sandbox_files_list(const struct sandbox_files *files, bool prepared,
                       const struct sandbox_path **ret_path);

/* Returns how many bytes tell what is listed, but for devices; `*ret` is static. More than
 * SANDBOX_ROOT_SEEN_MAX: it is not all. */
size_t sandbox_files_seen(const void **ret);

/* Returns how many are listed; `*ret` is sorted, and static. */
size_t sandbox_files_listed(struct entry **ret);

/* A path with symbolic links in it, and where it leads. */
struct sandbox_link {
    const char *from, *to;
    bool own; /* as for entries */
};

/* Returns how many paths of the list are such; `*ret` is static. */
size_t sandbox_files_links(const struct sandbox_link **ret);
