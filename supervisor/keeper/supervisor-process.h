/* SPDX-License-Identifier: MIT */
#pragma once

/* The supervisor's process: its signals, limits, environment and channel, and its crashes. */

#include "shared/base/clock.h"
#include "supervisor/keeper/keeper.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Prepares this process for being the parent of a supervisor: raises its descriptor limit, and
 * blocks all signals, listed in `*ret`, except those that a fault of this program raises. Returns
 * that limit; 0 = not known. */
size_t supervisor_process_init(sigset_t *ret);

/*
 * Starts one, which gets a copy of `notify_fd`. Returns its pid and the keeper's end of the channel
 * (close-on-exec, the caller's), or -errno, logged.
 */
pid_t supervisor_process_start(const struct program *program, int notify_fd, int *ret_channel);

/* Logs that this system call has just failed at the start. Returns -errno. */
int supervisor_process_cannot_start(const char *call);

/* Runs in the new process (supervisor-child.c), in a session of its own. `nofile` is the limit of
 * descriptors to restore, if it is not 0. */
_Noreturn void supervisor_child_run(const struct program *program, const struct keeper_ends *ends,
                                    pid_t keeper, const struct rlimit *nofile);

/* ---- crashes ---- */

/* So many crashes within this time switch to safe mode. */
#define CRASHES_MAX    3
#define CRASHES_WITHIN (30 * USEC_PER_SEC)

/* The recent crashes: after how long it is started again, and whether in safe mode. Valid when
 * zeroed. */
struct crashes {
    usec_t at[CRASHES_MAX]; /* the latest ones, in turns; 0 = none */
    uint32_t n;             /* since the start */
    bool safe_mode;         /* until crashes_forgive() */
    usec_t delay;           /* before the next restart in safe mode */
};

/* Counts one. Returns when to start the supervisor again: now, or later in safe mode. */
usec_t crashes_add(struct crashes *crashes, usec_t now);
/* Ends safe mode. */
void crashes_forgive(struct crashes *crashes);
