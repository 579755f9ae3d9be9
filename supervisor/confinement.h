/* SPDX-License-Identifier: MIT */
#pragma once

/* System calls of trouped's own: those that the supervisor, which reads what strangers send, gives
 * up for itself, and those that it needs. */

#include <stdbool.h>

/*
 * Loads a filter of system calls that this process, its threads and what it executes never make: to
 * change users, mounts and namespaces, to trace others, and what is about the machine. They fail
 * with EPERM. Workers are started by the keeper and are not concerned. Call it before the first
 * thread. Returns 0 or -errno.
 */
int confinement_apply(void);

/*
 * Returns whether the system calls are permitted that the supervisor needs; logs those that are
 * refused. All supported kernels have them, but the filters of old container engines do not know
 * them.
 */
bool confinement_permits_start(void);
