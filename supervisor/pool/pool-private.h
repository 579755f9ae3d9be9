/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between pool-*.c. */

#include "supervisor/pool/pool.h"
#include "supervisor/pool/slot/slot-private.h"

/* ---- pool-restart.c: see struct slot_handler ---- */

void pool_on_dying(struct slot *slot);
void pool_on_died(struct slot *slot);
void pool_on_restart_due(struct slot *slot);

/* ---- pool-standby.c ---- */

void pool_standby_init(struct pool *pool);

/* Queues a review of this slot's place: whether to stop or free its standby, or start a spare. */
void pool_standby_review(struct slot *slot);
void pool_standby_review_all(struct pool *pool);
/* Carries out the queued reviews, at the end of a turn. */
void pool_standby_step(struct pool *pool);

static inline bool slot_has_standby(const struct slot *place, enum slot_role role)
{
    return place->standby && place->standby->role == role;
}

/* Makes a standby that is not started yet. Returns NULL when out of memory. */
struct slot *pool_standby_new(struct slot *place, enum slot_role role);

/* Makes a standby for the worker that has outlived the last supervisor. Call it before the place or
 * the standby is resumed. The standby may become the member. Best effort: without memory, that
 * worker is ended. */
void pool_standby_restore(struct slot *place);
/* Its worker continues: as a spare, or until it has ended. */
void pool_standby_resume(struct slot *place);

/* Stops the place's spare, if it has one. */
void pool_standby_dismiss_spare(struct slot *place, bool hurry);

/* Whether this slot is a member whose spare can take over now. */
bool pool_standby_is_ready(const struct slot *slot);

/* Makes the standby the member, and the member its predecessor. */
void pool_standby_swap(struct slot *old);
/* Has the ready spare take the place of this member, which is to end. */
void pool_standby_take_over(struct slot *slot);

/* ---- pool-replacement.c ---- */

void pool_replacement_init(struct pool *pool);
void pool_replacement_deinit(struct pool *pool);

/* Queues the worker for replacement. `reason` is static: "it has done 100 jobs". Idempotent. */
void pool_replacement_queue(struct slot *slot, const char *reason);

/* Notes whether a roll has stopped before its end, also in the pool set. */
void pool_replacement_set_stopped(struct pool *pool, bool stopped);

/* Cancels the replacement of a slot that gets another process, or none, anyway. */
void pool_replacement_forget(struct slot *slot);

/* Begins replacements, at the end of a turn. */
void pool_replacement_step(struct pool *pool);
/* The worker is up; a successor takes its place before it is announced. */
void pool_replacement_on_ready(struct slot *slot);
/* The worker is dead or could not be started. */
void pool_replacement_on_failure(struct slot *slot);
/* The worker died: its successor takes over immediately, ready or not. Returns false if it has
 * none. */
bool pool_replacement_take_over(struct slot *slot);
