/* SPDX-License-Identifier: MIT */
#pragma once

struct actor;

/*
 * Permanently ends an actor and frees it. Its waiting messages become dead letters, many of them
 * in later turns; its observers are notified of `cause`; its asks, names, monitors, subscriptions
 * and the timers for it end.
 */
void actor_end(struct actor *actor, const char *cause);
