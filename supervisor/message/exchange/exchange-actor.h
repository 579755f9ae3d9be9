/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Exchanges as actors: a message for one is copied for each subscriber that it matches.
 */

#include "supervisor/message/actor.h"
#include "supervisor/message/exchange/exchange.h"

/* Exchanges at most: everybody may make some, and they outlive their makers. */
#define EXCHANGES_MAX 10000u

/* An exchange without subscriptions. 0, ACTOR_E_*, or -ENOMEM. */
int exchange_actor_new(struct actor **ret, struct message_context *context, const char *name,
                       enum exchange_kind kind);
