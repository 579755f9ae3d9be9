/* SPDX-License-Identifier: MIT */
#pragma once

/* Executes this program again, for a task that needs a process of its own. A fork() would copy the
 * page tables of all queued payloads, which takes 60 ms per GiB; posix_spawn() shares the memory
 * until the program is executed. */

#include <stddef.h>
#include <sys/types.h>

struct spawn_self_fd {
    int from; /* borrowed */
    int to;   /* its number in the new process */
};

/* `argv` ends with NULL. The process inherits `fds`, the environment, and no blocked signal.
 * Returns 0 with the pid of a child, which the caller reaps, or -errno. */
int spawn_self(char *const *argv, const struct spawn_self_fd *fds, size_t n_fds, pid_t *ret);
