/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Takes up the work again after the connection to the supervisor was lost, as happens when the
 * supervisor crashes or is restarted: attempts to connect come at growing, random intervals until
 * one succeeds or --reconnect= is over.
 */

#include "shared/base/clock.h"
#include <stdbool.h>

struct invocation;

/* The default of --reconnect=, for verbs that do not run until the user ends them. */
#define RECONNECT_DEFAULT (30 * USEC_PER_SEC)

struct reconnect {
    const struct invocation *invocation; /* borrowed */
    usec_t patience;                     /* 0 = never reconnect */
    usec_t deadline;                     /* monotonic; 0 = connected */
    usec_t pause;                        /* before the next attempt, at most */
};

/* `patience` applies unless --reconnect= is given. */
struct reconnect reconnect_make(const struct invocation *invocation, usec_t patience);

/*
 * Waits before the next attempt; tells the user the first time. Returns false if no further attempt
 * is to be made, after printing why, or because a signal has arrived (interrupt_seen()).
 */
bool reconnect_wait(struct reconnect *reconnect);

/* Records that the supervisor has answered; tells the user if the connection was lost before. */
void reconnect_done(struct reconnect *reconnect);

/* Whether a later attempt to connect may succeed after troupe_client_connect() failed so. */
bool reconnect_helps(int error);

/*
 * Calls `once` until it returns anything but EXIT_UNREACHABLE, or reconnect_wait() gives up. `once`
 * calls reconnect_done() after the first answer. Returns an exit status.
 */
int reconnect_run(struct invocation *invocation, usec_t patience,
                  int (*once)(struct invocation *invocation, struct reconnect *reconnect,
                              void *userdata),
                  void *userdata);
