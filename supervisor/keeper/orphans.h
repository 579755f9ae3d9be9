/* SPDX-License-Identifier: MIT */
#pragma once

/* Lists the keeper's children, to find orphans among them. The kernel does not report when a
 * process is orphaned. */

#include <sys/types.h>

/* Opens the kernel's list of children. Without it (no CONFIG_PROC_CHILDREN, no /proc) orphans
 * are reaped, but not killed. */
void orphans_open(void);
void orphans_close(void);

/* Calls `fn` with the pid of each child, orphan or not. */
void orphans_each(void (*fn)(pid_t pid));
