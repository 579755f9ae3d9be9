/* SPDX-License-Identifier: MIT */
#pragma once

/* Looks names up beside the loop: names.h in turns of it. */

#include "supervisor/config/names/names.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"

struct lookup {
    struct loop *loop;
    struct names names; /* what is wanted goes in here, what is known is found here */
    struct loop_watch watch;
    struct timer timeout;
    usec_t end; /* monotonic: when what is not known is given up */
    void (*done)(struct lookup *lookup);
};

enum {
    _LOOKUP_E_SUCCESS,
    LOOKUP_E_DONE, /* there is nothing to wait for */
};

void lookup_init(struct lookup *lookup, struct loop *loop, void (*done)(struct lookup *lookup));

/*
 * Looks up what is in lookup->names; `done` is called once, when all is known or given up, and may
 * deinit the lookup. 0, LOOKUP_E_DONE (`done` is not called), or -errno.
 */
int lookup_start(struct lookup *lookup);

/* Allowed at any time: calls it off, and forgets the names. Also for one that is all zero. */
void lookup_deinit(struct lookup *lookup);
