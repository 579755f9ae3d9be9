/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The signals that ask the supervisor for something, as events of the loop. They are blocked for
 * the whole process; spawn() gives every worker an empty mask again. SIGCHLD is not among them: a
 * death is seen through the worker's pidfd. SIGPIPE is ignored: a peer that went away is an -EPIPE.
 */

#include "supervisor/loop/loop.h"
#include <signal.h>
#include <sys/types.h>

/* signo: SIGTERM, SIGINT or SIGHUP. sender: its process, 0 if the kernel does not say (a terminal).
 */
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

/* Blocks the signals and watches for them. 0 or -errno; on error the mask is as it was. */
int signals_init(struct signals *signals, struct loop *loop, signals_fn fn, void *userdata);

/* Gives the mask back as it was. Harmless on SIGNALS_NULL. */
void signals_deinit(struct signals *signals);
