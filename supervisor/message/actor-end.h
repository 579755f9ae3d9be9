/* SPDX-License-Identifier: MIT */
#pragma once

struct actor;
struct message_context;

/*
 * Permanently ends an actor and frees it. Its waiting messages become dead letters, many of them
 * in later turns; its observers are notified of `cause`; its asks, names, monitors, subscriptions
 * and the timers for it end.
 */
void actor_end(struct actor *actor, const char *cause);

void actor_ends_init(struct message_context *context);
/* Rejects all messages of ended actors now: before an upgrade and at the end. */
void actor_ends_settle(struct message_context *context);
