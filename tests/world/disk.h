/* SPDX-License-Identifier: MIT */
#pragma once

/* The disk: SQLite's files, through a VFS that remembers what is not synced, and that fails. */

#include <stdbool.h>

struct sim_process;

/* Makes it SQLite's default. */
void disk_init(void);
/* Closes what a process that ends has left open, as the kernel does. In the last thread of that
 * process. */
void disk_forget(const struct sim_process *process);
/* The power fails, when no process has a file open: of what is not synced, some sectors are lost.
 */
void disk_cut(void);
/* From now on, or no more, there is no room. */
void disk_fill(bool full);
/* fsync(2) and fdatasync(2) of the product's own descriptors. */
void disk_on_sync(int fd);
