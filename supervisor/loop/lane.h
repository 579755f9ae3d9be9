/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Keeps what clients ask for from stopping everything else: about a millisecond of it in a turn,
 * and one that takes longer. Who was light goes at once while there is time, else at the end of the
 * turn or of the next; who took long the last time waits for that, too, behind those.
 */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "supervisor/loop/loop.h"
#include <stdbool.h>

#define LANE_TURN  USEC_PER_MSEC       /* of one turn */
#define LANE_HEAVY (USEC_PER_MSEC / 4) /* what takes so long waits the next time */

struct lane {
    struct loop *loop;
    struct list light, heavy; /* who waits */
    struct loop_deferred turn;
    usec_t turn_at; /* the turn that `spent` is of */
    usec_t spent;
};

/* Embedded in whoever wants to go. */
struct lane_place {
    struct list link; /* while it waits */
    bool heavy;
    void (*fn)(struct lane_place *place);
};

void lane_init(struct lane *lane, struct loop *loop);
void lane_deinit(struct lane *lane);

void lane_place_init(struct lane_place *place, void (*fn)(struct lane_place *place));
/* Calls the place's function, which must not free the place: now, or at the end of this turn or one
 * of the next. */
void lane_enter(struct lane *lane, struct lane_place *place);
/* Takes the wish back, if it waits. */
void lane_leave(struct lane_place *place);
