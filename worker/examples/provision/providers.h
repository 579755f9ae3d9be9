/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The providers that an order has to do with: actors, each asked to set its part up. One of them is
 * the current one; those before it have not answered in time. All are watched: the death of the
 * current one fails the order, that of another is only forgotten. What counts is the current one's
 * reply; whatever else comes goes to the dead letters, a late reply of a former one too.
 */

#include "worker/examples/provision/order.h"
#include "worker/examples/provision/outcome.h"
#include "worker/troupe.h"

#define PROVIDERS_MAX 8 /* for one order */

struct provider {
    char address[200];
    troupe_ref ref;
    struct troupe_future *death;
};

struct providers {
    struct troupe_actor *actor;
    uint64_t patience_usec;
    struct provider known[PROVIDERS_MAX]; /* the last one is the current one */
    size_t n_known;
};

/*
 * Asks those in `addresses` (separated by spaces), one after the other until one answers within the
 * patience; the last one has all the time that the job has. What it says becomes part of the order,
 * or of the outcome. 0 when the outcome has it all; -errno for what
 * is nobody's fault: the order is to be tried again.
 */
int providers_ask(struct providers *providers, const char *addresses, struct order *order,
                  struct outcome *outcome);

/* Forgets all of them: the order is done. */
void providers_forget(struct providers *providers);
