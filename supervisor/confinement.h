/* SPDX-License-Identifier: MIT */
#pragma once

/* The supervisor's own system calls. It reads what strangers send, so it gives up calls that it
 * never makes. */

#include <stdbool.h>

/*
 * Forbids this process, its threads and what it executes the system calls that change users, mounts
 * and namespaces, trace others, or concern the whole machine: they fail with EPERM. Workers, which
 * the keeper starts, are not affected. Call it before the first thread. Returns 0 or -errno.
 */
int confinement_apply(void);

/*
 * Returns whether the system calls that the supervisor needs are permitted; logs those that are
 * not. All supported kernels have them, but the filters of old container engines do not know them.
 */
bool confinement_permits_start(void);
