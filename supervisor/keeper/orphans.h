/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Processes that lost their parent and became the keeper's children. The kernel tells nobody when
 * that happens, so they are looked for when a death may have left some.
 */

#include <sys/types.h>

/* Opens the kernel's list of our children. Without it (a kernel without CONFIG_PROC_CHILDREN, no
 * /proc) orphans are reaped, but not ended. */
void orphans_open(void);
void orphans_close(void);

/* Calls `fn` with each child of ours, orphan or not. */
void orphans_each(void (*fn)(pid_t pid));
