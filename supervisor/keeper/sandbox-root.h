/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Mounts for a process with a root of its own: none but a root that cannot be written, which has a
 * /dev and nothing else. To leave the machine's mounts, the kernel waits for all CPUs, which takes
 * as long as most of the rest, and the mounts of a /dev take as long as all others; so both are
 * done once, in a mount namespace whose copies the processes get.
 */

#include "supervisor/keeper/sandbox-files.h"
#include "supervisor/keeper/sandbox-namespace.h"

/* Whether it is one of the devices that are in that /dev. */
bool sandbox_root_is_device(const struct sandbox_path *path);

/* Makes the links of a /dev in "dev", in the working directory. Returns 0 or -errno. */
int sandbox_root_make_links(void);

/* Without a storage (NULL) or CAP_SYS_CHROOT, a process gets a copy of what it sees instead. */
bool sandbox_root_is_prepared(const struct sandbox_namespace *bare);

/*
 * Moves this process into a copy; `bare` is the storage for what is copied, `files` has the
 * devices. Returns 1 if the root is that one, 0 if it is the machine's, or -errno.
 */
int sandbox_root_leave(const struct sandbox_namespace *bare, const struct sandbox_files *files);
