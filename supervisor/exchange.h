/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Exchanges: which of its subscribers an exchange hands a message to. Pure matching; who the
 * subscribers are and how they get it is the router's business.
 *
 *   single        any subscription replaces the one before it; gets everything
 *   typed-single  one subscriber per exact type, whoever had it before. The exact type first, else
 *                 the first registered subscription to an ancestor type. A replacement keeps the
 *                 place of what it replaces
 *   typed-multi   one per (actor, type); all whose type is the message's or an ancestor
 *   routing-key   one per (actor, type, key). Types as in typed-multi; a subscription without a key
 *                 takes every message, a message without one only reaches subscriptions without
 *
 * With wildcards, `*` as a word of a routing-key subscription's key stands for exactly one word,
 * `#` for any number of words, none included; words are separated by dots.
 *
 * Cost: a look-up is a search per ancestor of the type, whatever the number of subscriptions;
 * patterns are tried one by one, those of the message's type and its ancestors only.
 */

#include "../shared/list.h"
#include "../shared/topic.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum exchange_kind {
    EXCHANGE_SINGLE,
    EXCHANGE_TYPED_SINGLE,
    EXCHANGE_TYPED_MULTI,
    EXCHANGE_ROUTING_KEY,
    _EXCHANGE_N_KINDS,
};

enum {
    _EXCHANGE_E_SUCCESS,
    EXCHANGE_E_FULL, /* it has as many subscriptions as it may */
};

/* Subscriptions of one exchange, at most. */
#define EXCHANGE_SUBSCRIPTIONS_MAX 100000u

struct exchange {
    enum exchange_kind kind;
    bool wildcards;
    void *buckets;             /* tree of exchange_bucket, by what they are subscribed to */
    void *owned;               /* tree of exchange_subscription, by actor and bucket */
    void *patterns;            /* tree of exchange_patterns, by type */
    struct list subscriptions; /* in the order of their registration */
    uint32_t n_subscriptions;
    uint64_t sequence;
};

struct exchange_bucket;

struct exchange_subscription {
    struct list link; /* in the exchange */
    struct list bucket_link;
    struct list actor_link; /* in the subscriber's own list */
    struct exchange *exchange;
    struct exchange_bucket *bucket;
    uint64_t sequence;
    uint64_t actor;
    struct topic topic; /* as it was asked for; bytes owned */
};

void exchange_init(struct exchange *exchange, enum exchange_kind kind, bool wildcards);
/* Ends all subscriptions. */
void exchange_deinit(struct exchange *exchange);

/* "single" … "routing-key"; static. */
const char *exchange_kind_to_string(enum exchange_kind kind);
/* 0 or -EINVAL. */
int exchange_kind_from_string(enum exchange_kind *ret, const char *text);

/*
 * Subscribes an actor; evicts what the kind's rule replaces. `subscriptions` is the list in which
 * the actor has all its subscriptions, to any exchange. 0, EXCHANGE_E_FULL or -ENOMEM, and then
 * nothing has changed. The type must be valid, the key within TOPIC_KEY_MAX.
 */
int exchange_subscribe(struct exchange *exchange, uint64_t actor, struct list *subscriptions,
                       const struct topic *topic);

/*
 * Ends an actor's own subscription of exactly this type (in typed kinds) and key (in routing-key).
 * Whether there was one.
 */
bool exchange_unsubscribe(struct exchange *exchange, uint64_t actor, const struct topic *topic);

/* Ends every subscription in an actor's list: it is gone. */
void exchange_forget(struct list *subscriptions);

/*
 * Calls `deliver` for every subscription that a message of this topic matches, in the order of
 * their registration; an actor that several match is called as often. All matching is done before
 * the first call, so the callback may change the exchange, or free it. The number of calls, 0 = no
 * match, or -ENOMEM (no call).
 */
typedef void (*exchange_deliver_fn)(void *userdata, uint64_t actor);
int exchange_route(const struct exchange *exchange, const struct topic *topic,
                   exchange_deliver_fn deliver, void *userdata);

/*
 * Another kind, as after a reload: the subscriptions are made again in their order under the new
 * rules, which may evict some. 0 or -ENOMEM (some are lost then).
 */
int exchange_change(struct exchange *exchange, enum exchange_kind kind, bool wildcards);
