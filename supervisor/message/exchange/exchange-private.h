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
    struct list pattern_link;  /* if the key is a pattern */
};

/* The part of a topic that this kind of exchange uses. */
struct topic exchange_label(const struct exchange *exchange, const struct topic *topic);

/* NULL = there is no subscription to exactly this topic. */
struct exchange_bucket *exchange_find_bucket(const struct exchange *exchange,
                                             const struct topic *label);

/* Whether a key has `*` or `#` as one of its words. */
bool exchange_is_pattern(const char *key, uint32_t size);

/* The most words that exchange_pattern_matches() compares. */
uint32_t exchange_pattern_effort(const char *pattern, uint32_t size);

bool exchange_pattern_matches(const char *pattern, uint32_t pattern_size, const char *key,
                              uint32_t key_size);
