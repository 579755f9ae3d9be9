/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Paces the starting of processes: each takes the loop half a millisecond or more, and a thousand
 * that are to start at once would leave every client waiting for all of them. First come, first
 * served, a few a turn.
 */

#include "../shared/list.h"
#include "loop.h"

struct starter {
    struct loop *loop;
    struct list waiting;
    struct loop_deferred turn;
};

/* Embedded in whoever wants to start something; unlinking it takes the wish back. */
struct starter_wish {
    struct list link;
    void (*fn)(struct starter_wish *wish);
};

void starter_init(struct starter *starter, struct loop *loop);
void starter_deinit(struct starter *starter);

void starter_wish_init(struct starter_wish *wish, void (*fn)(struct starter_wish *wish));
/* Calls the wish's function later in this turn or in one of the next. Twice is once. */
void starter_add(struct starter *starter, struct starter_wish *wish);
