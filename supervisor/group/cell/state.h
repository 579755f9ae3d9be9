/* SPDX-License-Identifier: MIT */
#pragma once

/* The states of groups and cells, and their names. */

#include <stdbool.h>

struct census;

enum state {
    STATE_RUNNING, /* every worker is up */
    STATE_PAUSED,  /* the same, and no job is handed out */
    STATE_STARTING,
    STATE_DEGRADED, /* some workers are down, or still run the old program */
    STATE_FAILING,  /* most of the last jobs are dead */
    STATE_STOPPING,
    STATE_STOPPED,
    STATE_FAILED,
    STATE_DRAINING, /* a removed group whose last jobs run, or one that is drained */
    STATE_RETIRING, /* a cell without jobs whose workers stop */
};

/* Returns the state of these workers. */
enum state state_of(const struct census *census, bool paused);

/* Returns a static string. */
const char *state_to_string(enum state state);
