/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Trees of mounts that are put together before they are attached. The functions make system calls
 * and nothing else. A returned descriptor is close-on-exec and the caller's; errors are -errno.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mount_option {
    const char *name, *value;
};

/* Opens a path, which has no symbolic link in it (else -ELOOP), to be mounted on or cloned. */
int mount_open(const char *path);

/* Returns this process's mount namespace. */
int mount_namespace(void);

/* Copies what is mounted at this place, or the part of it from there on, with all mounts below. */
int mount_clone(int place);
/* Copies a part of an attached tree, without mounts below. */
int mount_clone_part(int tree, const char *name);

/* Makes a file system of this type. `options` ends with a NULL name. */
int mount_new(const char *type, const struct mount_option *options, uint64_t attributes);

/* Parts a copy from the machine: what is mounted in it stays there, and what the machine mounts
 * still appears in it. Also gives all its mounts further attributes. Returns 0 or -errno. */
int mount_separate(int tree, uint64_t attributes);

/* Makes all mounts of a tree read-only. Returns 0 or -errno. */
int mount_restrict(int tree);
/* Like mount_restrict(), but for its topmost mount only. */
int mount_restrict_one(int tree);
/* Like mount_restrict(), but for all mounts that this process sees. */
int mount_restrict_all(void);

/* Makes an attached tree the root and the working directory of this process. Its former view is
 * gone, unless the root was no mount that can be replaced (that of the kernel itself, or the
 * directory of a chroot), which stays below: who has CAP_SYS_CHROOT can then get there. Returns 0
 * or -errno. */
int mount_enter(int tree);

/* Attaches a tree. Its descriptor then stands for the mount. Returns 0 or -errno. */
int mount_attach(int tree, const char *path);

/* Returns false if certainly nothing is mounted below this place, itself one of a mount. */
bool mount_may_have_children(const char *path);

/* Calls `fn` with the place of each mount that this process sees, cut off at 255 bytes, as long as
 * that returns 0. Returns 0, a negative value that it has returned, -E2BIG for a line that is too
 * long, or -errno. */
int mount_each(int (*fn)(const char *place));

/* Makes a tree that is one empty file of this type without permissions. Uses /proc as the place to
 * make it, and leaves nothing there. */
int mount_new_node(mode_t type);
