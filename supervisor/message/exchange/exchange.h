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
 *   pattern       as routing-key; `*` as a word of a subscription's key stands for exactly one
 *                 word, `#` for any number of words, none included; words are separated by dots
 *
 * Cost: a look-up is a search per ancestor of the type, whatever the number of subscriptions;
 * patterns are tried one by one, those of the message's type and its ancestors only, and what they
 * may cost together is bounded.
 */

#include "shared/base/list-cursor.h"
#include "shared/base/list.h"
#include "shared/protocol/exchange-kind.h"
#include "shared/protocol/topic.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    _EXCHANGE_E_SUCCESS,
    EXCHANGE_E_FULL, /* the exchange or the actor has as many subscriptions as it may */
};

/* Subscriptions at most: of one exchange, and of one actor to all of them, so that no actor can
 * take the others' place. */
#define EXCHANGE_SUBSCRIPTIONS_MAX 1000000u
#define EXCHANGE_PER_ACTOR_MAX     10000u
/* What all patterns of an exchange may cost a message at most, in words compared (some
 * nanoseconds each), and those of one actor. */
#define EXCHANGE_EFFORT_MAX       250000u
#define EXCHANGE_EFFORT_ACTOR_MAX 25000u

struct exchange {
    enum exchange_kind kind;
    void *buckets;             /* tree of exchange_bucket, by what they are subscribed to */
    void *owned;               /* tree of exchange_subscription, by actor and bucket */
    void *patterns;            /* tree of exchange_patterns, by type */
    struct list subscriptions; /* in the order of their registration, which is that of `sequence` */
    struct list cursors;       /* struct list_cursor.link, in these */
    uint32_t n_subscriptions;
    uint32_t effort; /* of its patterns */
    uint64_t sequence;
    char *description; /* for lists; NULL = none; owned */
    bool declared;     /* by a file, not at run time */
    uint64_t creator;  /* the actor that made it; 0 = a file, or somebody outside */
    /* A message may have another recipient now. Not called for kinds that copy; may be NULL. */
    void (*rerouted)(void *userdata);
    void *userdata;
};

/* Whether each message goes to one subscriber at most. */
static inline bool exchange_picks_one(const struct exchange *exchange)
{
    return exchange->kind == EXCHANGE_SINGLE || exchange->kind == EXCHANGE_TYPED_SINGLE;
}

struct exchange_bucket;

/* What an actor that may subscribe embeds. */
struct exchange_subscriber {
    uint64_t actor;            /* its reference */
    struct list subscriptions; /* to any exchange */
    uint32_t n_subscriptions;
    uint32_t effort; /* of those that are patterns */
};

struct exchange_subscription {
    struct list link; /* in the exchange */
    struct list bucket_link;
    struct list actor_link; /* in the subscriber */
    struct exchange *exchange;
    struct exchange_bucket *bucket;
    struct exchange_subscriber *subscriber;
    uint64_t sequence;
    uint32_t effort;
    struct topic topic; /* as it was asked for; bytes owned */
};

void exchange_init(struct exchange *exchange, enum exchange_kind kind);
/* Ends all subscriptions. */
void exchange_deinit(struct exchange *exchange);
/* Copied. 0 or -ENOMEM. */
int exchange_describe(struct exchange *exchange, const char *description);

/* "single" … "pattern", as in the Varlink interface; static. */
const char *exchange_kind_to_string(enum exchange_kind kind);

void exchange_subscriber_init(struct exchange_subscriber *subscriber, uint64_t actor);

/*
 * Subscribes an actor; evicts what the kind's rule replaces. 0, EXCHANGE_E_FULL or -ENOMEM, and
 * then nothing has changed. The type must be valid, the key within TOPIC_KEY_MAX.
 */
int exchange_subscribe(struct exchange *exchange, struct exchange_subscriber *subscriber,
                       const struct topic *topic);

/*
 * Ends an actor's own subscription of exactly this type (in typed kinds) and key (in routing-key).
 * Whether there was one.
 */
bool exchange_unsubscribe(struct exchange *exchange, struct exchange_subscriber *subscriber,
                          const struct topic *topic);

/* Ends every subscription of an actor: it is gone. */
void exchange_forget(struct exchange_subscriber *subscriber);

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
int exchange_change(struct exchange *exchange, enum exchange_kind kind);
