/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Internal interface between exchange.c (subscriptions, in buckets by topic) and exchange-match.c
 * (finds the buckets of a message).
 */

#include "supervisor/message/exchange/exchange.h"

/* All subscriptions to one topic, reduced to the parts that the kind uses. */
struct exchange_bucket {
    struct topic topic; /* bytes follow */
    struct index_entry by_topic;
    struct list subscriptions; /* in the order of registration; never empty */
    struct list *passed;       /* the last subscription that got a copy; NULL = not known */
};

/* The part of a topic that this kind of exchange uses. */
struct topic exchange_label(const struct exchange *exchange, const struct topic *topic);

/* NULL = there is no subscription to exactly this topic. */
struct exchange_bucket *exchange_find_bucket(const struct exchange *exchange,
                                             const struct topic *label);
