/* SPDX-License-Identifier: MIT */
#pragma once

/* Signals as events of the loop: SIGTERM, SIGINT, SIGHUP and SIGCHLD. They are blocked for the
 * whole process; spawn() gives every worker an empty mask. Workers are children of the keeper, so
 * they cause no SIGCHLD. SIGPIPE is ignored: writing to a peer that has gone fails with -EPIPE.
 */

#include "supervisor/loop/loop.h"
#include <signal.h>
#include <sys/types.h>

/* `sender`: the process that sent the signal; 0 if unknown, for instance from a terminal. */
typedef void (*signals_fn)(void *userdata, int signo, pid_t sender);

struct signals {
    struct loop *loop;
    struct loop_watch watch;
    int fd;
    sigset_t saved_mask;
    signals_fn fn;
    void *userdata;
};

/* clang-format off */
#define SIGNALS_NULL {.fd = -1, .watch = LOOP_WATCH_NULL}
/* clang-format on */

/* Blocks the signals and watches for them. 0 or -errno; on error the mask is unchanged. */
int signals_init(struct signals *signals, struct loop *loop, signals_fn fn, void *userdata);

/* Restores the mask. Harmless on SIGNALS_NULL. */
void signals_deinit(struct signals *signals);
