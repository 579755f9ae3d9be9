/* SPDX-License-Identifier: MIT */
#pragma once

/* The new process between clone and exec, in a copy of its parent's memory. The parent has one
 * thread, and all signals are blocked and none ignored. Private to spawn. */

#include "supervisor/keeper/spawn.h"
#include <stdbool.h>
#include <sys/types.h>

struct spawn_child {
    const struct spawn_options *options;
    struct spawn_fd fds[SPAWN_FDS_MAX + 3]; /* 0, 1 and 2 always; fd -errno = no /dev/null */
    size_t n_fds;
    int report_fd; /* may be moved, to make room for `fds` */
    pid_t parent;
    int parent_fd;    /* its pidfd if it is in another PID namespace, or -1; may also be moved */
    int pids_error;   /* why there is no such namespace, or 0 */
    int null_fd;      /* /dev/null, or -errno */
    bool join_cgroup; /* clone() did not do it */
    struct sandbox_state state;
};

_Noreturn void spawn_child_main(struct spawn_child *child);
/* Reports the failure, and ends the process. */
_Noreturn void spawn_fail(const struct spawn_child *child, enum spawn_step step, int error);

/* ---- spawn-descriptors.c ---- */

/* Leaves the process those descriptors that it is to have, and what is needed until the exec. */
void spawn_set_up_descriptors(struct spawn_child *child);
