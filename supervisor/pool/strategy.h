/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Strategy=: which other workers restart when one of them dies. They are ended at once, their jobs
 * go back without having used up an attempt, and all start again together, in the order of their
 * slots, when the last of them is down and the back-off of the one that died is over. A worker that
 * dies meanwhile waits with them and takes nobody else along.
 *
 * With rest-for-one the groups that come After= this one restart as well: each once those before it
 * have come up again. The pool's owner sees to that.
 */

#include "supervisor/config/config.h"
#include <stdbool.h>

struct slot;

/* Whether the death of slot `dead` of a pool takes slot `index` with it. */
bool strategy_takes(enum config_strategy strategy, unsigned dead, unsigned index);

/* It died unasked and is to be restarted: ends those that go with it, and holds it until
 * pool_release(). */
void strategy_on_death(struct slot *slot);

/* A held slot is down. */
void strategy_on_down(struct slot *slot);

/* Somebody starts, stops or resets it: the others do not wait for it any more. */
void strategy_forget(struct slot *slot);
