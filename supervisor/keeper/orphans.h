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

/* Begins a list of all children, orphans or not. Returns whether there is one. */
bool orphans_begin(void);
/* Calls `fn` with the pids of the next ones, some hundreds. Returns whether there may be more. */
bool orphans_next(void (*fn)(pid_t pid));
