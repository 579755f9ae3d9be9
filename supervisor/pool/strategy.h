/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Strategy=: which other workers are restarted when one of them dies. They are ended at once, their
 * jobs go back without having used up an attempt, and all start again together, in the order of
 * their slots, when the last of them is down and the back-off of the one that died is over. What
 * dies meanwhile belongs to the same misfortune and takes nobody else along.
 *
 * With rest-for-one the groups that come After= this one are restarted as well: each once those
 * before it have come up again.
 */

#include "supervisor/config/config.h"
#include <stdbool.h>

struct cell;
struct group;
struct slot;

/* Whether the death of slot `dead` of a cell takes slot `index` with it. */
bool strategy_takes(enum config_strategy strategy, unsigned dead, unsigned index);

/* It died unasked and is to be restarted: ends those that go with it, and holds it until
 * strategy_on_due(). */
void strategy_on_death(struct slot *slot);

/* The back-off of the one that died is over: those that are held with it may start once all of them
 * are down, unless their group waits for others. */
void strategy_on_due(struct slot *slot);

/* One of them is down. */
void strategy_on_down(struct slot *slot);

/* It is started, stopped or reset by somebody: the others do not wait for it. */
void strategy_forget(struct slot *slot);

/* A group whose turn it is after those before it: false = it has not been started at all. */
bool strategy_release_group(struct group *group);
