/* SPDX-License-Identifier: MIT */
#pragma once

/* Starts the supervisor's process: its signals, limits, environment and channel. */

#include "supervisor/keeper/keeper.h"
#include <signal.h>
#include <sys/types.h>

/* How each supervisor is started. */
struct supervisor_process {
    struct keeper_program *program;
    int notify_fd; /* what each supervisor gets a copy of; -errno of relay_open() */
};

/* Prepares this process for being the parent of a supervisor: raises its descriptor limit, and
 * blocks all signals, listed in `*ret`, except those that a fault of this program raises. */
void supervisor_process_init(sigset_t *ret);

/*
 * Starts one. Returns its pid and the keeper's end of the channel (close-on-exec, the caller's), or
 * -errno, logged. The new process calls `on_fork` before anything else.
 */
pid_t supervisor_process_start(const struct supervisor_process *process, void (*on_fork)(void),
                               int *ret_channel);

/* Logs that this system call has just failed at the start. Returns -errno. */
int supervisor_process_cannot_start(const char *call);
