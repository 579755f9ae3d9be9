/* SPDX-License-Identifier: MIT */
#pragma once

/* Exchanges as actors, which hand messages on to their subscribers. */

#include "supervisor/message/actor.h"
#include "supervisor/message/exchange/exchange.h"

/* Any actor may make exchanges, and they outlive it. */
#define EXCHANGES_MAX 10000u

/* An exchange without subscriptions. 0, ACTOR_E_*, or -ENOMEM. */
int exchange_actor_new(struct actor **ret, struct message_context *context, const char *name,
                       enum exchange_kind kind);
