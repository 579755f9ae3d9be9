/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The new process between clone and exec. It runs in a copy of its parent's memory; the parent has
 * one thread, all signals blocked and none ignored. Private to spawn.
 */

#include "supervisor/keeper/spawn.h"
#include <stdbool.h>
#include <sys/types.h>

struct spawn_child {
    const struct spawn_options *options;
    struct spawn_fd fds[SPAWN_FDS_MAX + 3]; /* 0, 1 and 2 included, where fd -1 = /dev/null */
    size_t n_fds;
    int report_fd; /* as moved out of the way of `fds` */
    pid_t parent;
    bool no_terminal; /* the parent has none, for certain */
    bool join_cgroup; /* was not cloned into it */
};

_Noreturn void spawn_child_main(struct spawn_child *child);
