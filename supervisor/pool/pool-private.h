/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Internal interface between pool-*.c:
 *
 *   pool.c              the slots, and what they tell the pool
 *   pool-restart.c      whether and when a dead worker gets a successor
 *   pool-strategy.c     which others restart with it
 *   pool-standby.c      the second worker of a place: a spare, a successor or a predecessor
 *   pool-replacement.c  which workers are replaced, one after the other
 *
 * A place never has more than two workers: the member and its standby.
 */

#include "supervisor/config/config.h"
#include "supervisor/pool/pool.h"
#include "supervisor/pool/slot/slot-private.h"

/* ---- pool-restart.c: see struct slot_handler ---- */

void pool_on_dying(struct slot *slot);
void pool_on_died(struct slot *slot);
void pool_on_restart_due(struct slot *slot);

/* ---- pool-strategy.c ---- */

/* Whether the death of slot `dead` of a pool takes slot `index` with it. */
bool strategy_takes(enum config_strategy strategy, unsigned dead, unsigned index);

/* It died unasked and is to be restarted: ends those that go with it, and holds it until
 * pool_release(). */
void strategy_on_death(struct slot *slot);
/* A held slot is down. */
void strategy_on_down(struct slot *slot);
/* Somebody starts, stops or resets it: the others do not wait for it any more. */
void strategy_forget(struct slot *slot);

/* ---- pool-standby.c ---- */

void standby_init(struct pool *pool);
void standby_deinit(struct pool *pool);

/* Something has changed at this slot's place: at the end of the turn its standby is let go or
 * freed, or gets a spare soon. */
void standby_review(struct slot *slot);
void standby_review_all(struct pool *pool);
/* At the end of a turn: does what was to be reviewed. */
void standby_step(struct pool *pool);

static inline bool slot_has_standby(const struct slot *place, enum slot_role role)
{
    return place->standby && place->standby->role == role;
}

/* A second worker for this place, not started yet, with the other one of its two cgroups. NULL when
 * out of memory. */
struct slot *standby_new(struct slot *place, enum slot_role role);

/* Stops the place's spare, if it has one. */
void standby_dismiss_spare(struct slot *place, bool hurry);

/* Whether the place of this member has a spare that can take over now. */
bool standby_is_ready(const struct slot *slot);

/* The standby takes the place, with all that belongs to the place and not to the worker. The member
 * is a predecessor from now on, and the standby of its successor. */
void standby_swap(struct slot *old);

/* The ready spare takes the place of this member, which is wanted no more. */
void standby_take_over(struct slot *slot);

/* ---- pool-replacement.c ---- */

void replacement_init(struct pool *pool);
void replacement_deinit(struct pool *pool);

/* Queues the worker for replacement. `reason` is static, and goes into the event: "it has done 100
 * jobs". Idempotent. */
void replacement_queue(struct slot *slot, const char *reason);

/* Whether a roll has stopped on its way; the pool set counts such pools. */
void replacement_set_stopped(struct pool *pool, bool stopped);

/* The place gets a new process, or none, by other ways: nothing is to be replaced any more. */
void replacement_forget(struct slot *slot);

/* At the end of a turn: begins what waits. */
void replacement_step(struct pool *pool);
/* The worker came up; a successor takes its place before it is announced. */
void replacement_on_ready(struct slot *slot);
/* The worker is dead or could not be started. */
void replacement_on_failure(struct slot *slot);
/* This standby is about to be freed. */
void replacement_on_gone(struct slot *standby);
/* The worker died while its successor is on its way up: that one takes over at once, ready or not.
 * False = there is none. */
bool replacement_take_over(struct slot *slot);
