/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The providers of an order: actors that are asked to set up their part. One of them is the current
 * one; those before it have not answered in time. All are monitored: the death of the current one
 * fails the order, the death of another is ignored. Only the current one's reply counts; all
 * others, such as a late reply of a former one, become dead letters.
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
 * Asks those in `addresses` (separated by spaces), one after the other, until one answers within
 * the patience; the last one has all the time of the job. Its answer becomes part of the order, or
 * of the outcome. 0 if the outcome is complete; -errno if the order must be tried again.
 */
int providers_ask(struct providers *providers, const char *addresses, struct order *order,
                  struct outcome *outcome);

/* Forgets all providers, at the end of the order. */
void providers_forget(struct providers *providers);
