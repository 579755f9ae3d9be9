/* SPDX-License-Identifier: MIT */
#pragma once

/* The machine on which the real keeper runs: the kernel's table of processes, which are those of
 * sched.h, and a service manager that starts the keeper again. */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <sys/types.h>

struct sim_process;

/* Starts the first keeper. */
void machine_start(const char *directory, const char *socket_path);

/* The supervisor that the keeper has; NULL between two. */
struct sim_process *machine_supervisor(void);
/* The power fails: the keeper dies, and all that it has started. */
void machine_cut_power(void);
/* How long there has been a supervisor that is ready. */
usec_t machine_ready_time(void);

/* fork(2), by a template, of a process that begins with `start`, whose strings it takes. */
struct program_start;
void machine_fork(const struct program_start *start);
/* Writes the pid into a message's credentials, as the kernel does. */
struct msghdr;
void machine_name_sender(struct msghdr *message);

/* kill(2) and pidfd_send_signal(2) upon a process that the keeper has started. 0 or -1. */
int machine_signal(pid_t pid, int signal);
int machine_signal_pidfd(int fd, int signal);
/* pidfd_open(2). Returns -1 but for the keeper's children. */
int machine_open_pidfd(pid_t pid);

/* ---- the disk (disk.c) ---- */

/* Makes it SQLite's default: a VFS that remembers what is not synced, and that fails. */
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
int disk_on_sync(int fd);
