/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Between exchange.c, which says who is subscribed, exchange-bucket.c, which says to what, and
 * exchange-match.c, which looks it up.
 */

#include "supervisor/message/exchange/exchange.h"

/* All subscriptions to the same thing: what the kind's replacement rule goes by. */
struct exchange_bucket {
    struct topic topic;        /* without what the kind does not look at; bytes follow */
    struct list subscriptions; /* in the order of their registration; never empty */
    struct list pattern_link;
    struct exchange_patterns *patterns; /* NULL: the key stands for itself */
};

/* The buckets of one type whose key is a pattern. */
struct exchange_patterns {
    struct topic topic; /* a type alone; bytes follow */
    struct list buckets;
};

/* What of a topic this kind of exchange goes by. */
struct topic exchange_label(const struct exchange *exchange, const struct topic *topic);

/*
 * An object that begins with `size` zero bytes and ends with a copy of a topic's bytes, which `ret`
 * points at. NULL when out of memory.
 */
void *exchange_new_with_topic(size_t size, const struct topic *topic, struct topic *ret);

/* NULL when out of memory. It is the caller's to put a subscription in, or free it. */
struct exchange_bucket *exchange_bucket_new(struct exchange *exchange, const struct topic *label);
void exchange_bucket_free(struct exchange *exchange, struct exchange_bucket *bucket);

/* NULL if nobody is subscribed to exactly this. */
struct exchange_bucket *exchange_find_bucket(const struct exchange *exchange,
                                             const struct topic *label);
struct exchange_patterns *exchange_find_patterns(const struct exchange *exchange,
                                                 const struct topic *type);

/* Whether a key has `*` or `#` as one of its words. */
bool exchange_is_pattern(const char *key, uint32_t size);

/* Words that are compared at most to find out whether a key is what the pattern says. */
uint32_t exchange_pattern_effort(const char *pattern, uint32_t size);

/* Whether the words of a key are what the pattern says. */
bool exchange_pattern_matches(const char *pattern, uint32_t pattern_size, const char *key,
                              uint32_t key_size);
