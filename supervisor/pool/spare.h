/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Spare=: each of the first so many places of a pool has a second worker, started and ready, that
 * stands by. It gets no job and no message; when the place is to get another process, it takes over
 * at once. A new one is started beside it when the one before is gone.
 *
 * The spare is the slot beside its place (slot->beside): same name and %i, its own generation, the
 * other one of the place's two cgroups. Afterwards the one that it took over from is beside it, as
 * a predecessor, until its process has ended. So a place never has more than two processes, and
 * what was in hand or on its way to the one before goes on as with a recycled worker.
 */

#include <stdbool.h>

struct pool;
struct slot;

void spare_init(struct pool *pool);
void spare_deinit(struct pool *pool);

/* Something has changed at this place: a spare is let go of at the end of the turn, or started
 * soon. */
void spare_review(struct slot *slot);
/* At all places: another configuration. */
void spare_review_all(struct pool *pool);

/* Told by the cell at the end of a turn. */
void spare_step(struct pool *pool);

/* The place's spare, if it has one, is stopped: it is of no use any more. */
void spare_dismiss(struct slot *slot, bool hurry);

/* Whether the place of this member has a spare that can take over now. */
bool spare_is_ready(const struct slot *slot);

/* The ready spare takes the place of this member, which is wanted no more. */
void spare_take_over(struct slot *slot);
