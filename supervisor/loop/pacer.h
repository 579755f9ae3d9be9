/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Paces what takes the loop long and comes by the thousand: the starting of processes (half a
 * millisecond each, or more) and the burying of those that died at once. First come, first served,
 * a few a turn, so that no client waits for all of them.
 */

#include "shared/base/list.h"
#include "supervisor/loop/loop.h"
#include <stdbool.h>

struct pacer {
    struct loop *loop;
    struct list waiting;
    struct loop_deferred turn;
    bool patient; /* what the loop has to tell when the first wish comes is told before */
    bool waited;
    bool held; /* see pacer_hold() */
};

/* Embedded in whoever wants to do something; unlinking it takes the wish back. */
struct pacer_wish {
    struct list link;
    void (*fn)(struct pacer_wish *wish);
};

void pacer_init(struct pacer *pacer, struct loop *loop);
void pacer_deinit(struct pacer *pacer);

void pacer_wish_init(struct pacer_wish *wish, void (*fn)(struct pacer_wish *wish));
/* Nobody gets a turn until it is released again. */
void pacer_hold(struct pacer *pacer, bool hold);

/* Calls the wish's function later in this turn or in one of the next. Twice is once. */
void pacer_add(struct pacer *pacer, struct pacer_wish *wish);
