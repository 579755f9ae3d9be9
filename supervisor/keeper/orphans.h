/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Processes that lost their parent and became the keeper's children. The kernel tells nobody when
 * that happens, so they are looked for when a death may have left some.
 */

#include <stdbool.h>
#include <sys/types.h>

/* Opens the kernel's list of our children. Without it (a kernel without CONFIG_PROC_CHILDREN, no
 * /proc) orphans are reaped, but not ended. */
void orphans_open(void);
void orphans_close(void);

/*
 * SIGKILL to each child that `is_kept` does not know. Their own children are orphans once they are
 * dead: to be called again after each of them was reaped, until there are none.
 */
void orphans_end(bool (*is_kept)(pid_t pid));
