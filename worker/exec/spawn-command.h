/* SPDX-License-Identifier: MIT */
#pragma once

/* Starts the process of a command. */

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct spawned {
    pid_t pid; /* also its process group */
    int pidfd;
    int input; /* this process's pipe ends, non-blocking; -1 = /dev/null */
    int output, error;
};

/* clang-format off */
#define SPAWNED_NULL {.pid = -1, .pidfd = -1, .input = -1, .output = -1, .error = -1}
/* clang-format on */

/* The command inherits the environment. `mask`: its signal mask. `feed`: its standard input is a
 * pipe. Returns 0 or -errno, of execve(2) as well. */
int spawn_command(struct spawned *ret, const char *path, char *const *argv, const sigset_t *mask,
                  bool feed);

/* Closes the descriptors. The caller reaps the process. */
void spawned_deinit(struct spawned *spawned);
