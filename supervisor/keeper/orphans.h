/* SPDX-License-Identifier: MIT */
#pragma once

/* Lists the keeper's children, to find orphans among them. The kernel does not report when a
 * process is orphaned. */

#include <stdbool.h>
#include <sys/types.h>

/* Opens the kernel's list of children. Without it (no CONFIG_PROC_CHILDREN, no /proc) orphans
 * are reaped, but not killed. */
void orphans_open(void);
void orphans_close(void);

/* Begins to list all children, orphans or not. Returns false if the list cannot be read. */
bool orphans_begin(void);
/* Calls `fn` with the pids of the next few hundred children. Returns whether there may be more. */
bool orphans_next(void (*fn)(pid_t pid));
