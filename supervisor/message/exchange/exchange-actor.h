/* SPDX-License-Identifier: MIT */
#pragma once

/* Exchanges as actors, which forward messages to their subscribers. */

#include "supervisor/message/actor.h"
#include "supervisor/message/exchange/exchange.h"

enum {
    _EXCHANGE_ACTOR_E_SUCCESS,
    EXCHANGE_ACTOR_E_FOREIGN, /* the subscriber's group may not subscribe */
};

/* Any actor may create exchanges, which outlive it. The actors of one group create no more than
 * remains free for all others. */
#define EXCHANGES_MAX           10000u
#define EXCHANGES_PER_ACTOR_MAX 256u

/* Makes an exchange without subscriptions. `declared`: the configuration declares it, so it has the
 * same reference under the next supervisor. Returns 0, ACTOR_E_*, or -ENOMEM. */
int exchange_actor_new(struct actor **ret, struct message_context *context, const char *name,
                       enum exchange_kind kind, bool declared);
/*
 * Like exchange_actor_new(), but for an exchange created by an actor. All exchanges of one creator
 * together hold as many messages as one mailbox. Also ACTOR_E_TOO_MANY beyond
 * EXCHANGES_PER_ACTOR_MAX.
 */
int exchange_actor_make(struct actor **ret, struct actor *creator, const char *name,
                        enum exchange_kind kind);
/* Like exchange_actor_make(), but for one that the last supervisor had. */
int exchange_actor_restore(struct actor **ret, struct actor *creator, const char *name,
                           enum exchange_kind kind);

/*
 * Checks whether an actor may subscribe. Admitted are clients, and workers of the groups in
 * MaySubscribe=. Without MaySubscribe=, these are the workers of one group: that of the worker that
 * created the exchange, else the first subscriber's, which this call then records. Returns 0,
 * EXCHANGE_ACTOR_E_FOREIGN for a worker of another group, or -ENOMEM.
 */
int exchange_actor_admit(struct actor *exchange, const struct actor *subscriber);
/* Sets the groups that may subscribe (copied; NULL = none is named), and ends the subscriptions of
 * all others. Returns 0 or -ENOMEM with nothing changed. */
int exchange_actor_permit(struct actor *exchange, char *const *groups);

/* Ends the ties to its creator. */
void exchange_actor_disown(struct actor *actor);
