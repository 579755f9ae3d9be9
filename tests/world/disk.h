/* SPDX-License-Identifier: MIT */
#pragma once

/* The databases that processes of the world have open. */

struct sim_process;

/* Closes, as far as SQLite knows, what a process that ends has left open: without a checkpoint. In
 * the last thread of that process. */
void disk_forget(const struct sim_process *process);
