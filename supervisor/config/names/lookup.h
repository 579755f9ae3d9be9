/* SPDX-License-Identifier: MIT */
#pragma once

/* Looks names up asynchronously: names.h driven by the event loop. */

#include "supervisor/config/names/names.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"

struct lookup {
    struct loop *loop;
    struct names names; /* filled in by the caller; holds the results */
    struct loop_watch watch;
    struct timer timeout;
    usec_t end; /* monotonic; unknown names are given up then */
    void (*done)(struct lookup *lookup);
};

enum {
    _LOOKUP_E_SUCCESS,
    LOOKUP_E_DONE, /* everything is known already */
};

void lookup_init(struct lookup *lookup, struct loop *loop, void (*done)(struct lookup *lookup));

/*
 * Looks up lookup->names. `done` is called once, when all are known or given up, and may deinit the
 * lookup. Returns 0, LOOKUP_E_DONE (`done` is not called) or -errno.
 */
int lookup_start(struct lookup *lookup);

/* Cancels the lookup and frees the names. Allowed at any time, also for a zeroed struct. */
void lookup_deinit(struct lookup *lookup);
