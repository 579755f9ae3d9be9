/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The new process between clone and exec. It runs in the supervisor's memory while that waits
 * for it: nothing here may allocate, lock, return, or call what keeps a state of its own in the
 * C library. Private to spawn.
 */

#include "spawn.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* In memory that both share, whatever kind of clone it was. */
struct spawn_report {
    int error;                /* negative errno; 0 = exec succeeded */
    const char *step;         /* what failed */
    _Atomic uint32_t pending; /* a futex: the child is in our memory; the kernel clears it */
};

struct spawn_child {
    const struct spawn_options *options;
    struct spawn_report *report;
    struct spawn_fd fds[SPAWN_FDS_MAX + 3]; /* 0, 1 and 2 included, where fd -1 = /dev/null */
    size_t n_fds;
    pid_t parent;
    bool join_cgroup;   /* was not cloned into it */
    bool set_oom_score; /* has not inherited it */
};

_Noreturn void spawn_child_main(const struct spawn_child *child);

/* Writes a decimal number, no NUL; `buffer` has room for 12 bytes. Returns the length. */
size_t spawn_format_int(char *buffer, int value);
