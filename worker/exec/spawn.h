/* SPDX-License-Identifier: MIT */
#pragma once

/* Starts the command's process; command.c is what lives with it. */

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct spawned {
    pid_t pid; /* also its process group */
    int pidfd;
    int input; /* our ends of the pipes, not blocking; -1 = /dev/null there */
    int output, error;
};

/* clang-format off */
#define SPAWNED_NULL {.pid = -1, .pidfd = -1, .input = -1, .output = -1, .error = -1}
/* clang-format on */

/*
 * `mask`: the signal mask it gets. With `feed`, its standard input is a pipe. 0, or -errno, of
 * execve(2) as well; nothing is left behind then.
 */
int spawn_command(struct spawned *ret, const char *path, char *const *argv,
                  char *const *environment, const sigset_t *mask, bool feed);

/* Closes the descriptors. The process is to be reaped before. */
void spawned_deinit(struct spawned *spawned);
