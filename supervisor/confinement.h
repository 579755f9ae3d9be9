/* SPDX-License-Identifier: MIT */
#pragma once

/* trouped's own: what the supervisor, which reads what strangers send, gives up for itself. */

/*
 * Loads a filter of system calls that this process, its threads and what it executes never make: to
 * change users, mounts and namespaces, to trace others, and what is about the machine. They fail
 * with EPERM. Workers are started by the keeper and are not concerned. Call it before the first
 * thread. Returns 0 or -errno.
 */
int confinement_apply(void);
