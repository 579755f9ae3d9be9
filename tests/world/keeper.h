/* SPDX-License-Identifier: MIT */
#pragma once

/* Stands in for the keeper: speaks supervisor/keeper/message.h, and starts programs of programs.h
 * as processes of the world. It also starts supervisors, after a crash as for an upgrade. */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <sys/types.h>

struct sim_process;

struct keeper_options {
    const char *config_directory;
    const char *socket_path;
};

/* Starts the keeper, which starts the first supervisor. */
void keeper_start(const struct keeper_options *options);

/* The supervisor that is not about to end; NULL between two. */
struct sim_process *keeper_supervisor(void);
/* Returns any worker that lives, chosen at random, or NULL. */
struct sim_process *keeper_any_worker(void);
/* The keeper dies, and with it all that it has started; or the power fails. It starts again. */
void keeper_kill(bool by_power_cut);
/* How long there has been a supervisor that is ready. */
usec_t keeper_ready_time(void);

/* kill(2) and pidfd_send_signal(2) upon a process that the keeper has started. 0 or -1. */
int keeper_signal(pid_t pid, int signal);
int keeper_signal_pidfd(int fd, int signal);
