/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Mounts for a process with a root of its own: none but an empty root that cannot be written. To
 * leave the machine's mounts, the kernel waits for all CPUs, which takes as long as most of the
 * rest; so that is done once, in a mount namespace whose copies the processes get.
 */

#include "supervisor/keeper/sandbox-namespace.h"

/*
 * Moves this process into a copy; `empty` is the storage for what is copied. Without a storage
 * (NULL) or CAP_SYS_CHROOT it gets a copy of what it sees, and keeps that for itself. Returns 1 if
 * the root is empty, 0 if it is the machine's, or -errno.
 */
int sandbox_root_leave(const struct sandbox_namespace *empty);
