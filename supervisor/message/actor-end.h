/* SPDX-License-Identifier: MIT */
#pragma once

struct actor;

/*
 * Ends an actor for good and frees it: what waits for it becomes dead letters, those who monitor it
 * are told `cause`, its asks, names, monitors, subscriptions and the timers for it end.
 */
void actor_end(struct actor *actor, const char *cause);
