/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Exchanges: finds the subscribers of a message. The router delivers it.
 *
 *   single        one subscriber, the latest, gets every message
 *   typed-single  one subscriber per exact type, the latest. A message goes to the one of its exact
 *                 type, else to the first registered of an ancestor type. A subscription keeps the
 *                 position of the one that it replaces
 *   typed-multi   one subscription per (actor, type); all of the message's type and its ancestors
 *   routing-key   one per (actor, type, key); types like typed-multi. A subscription without key
 *                 takes every message; a message without key reaches only such subscriptions
 *   pattern       like routing-key; in a subscription's key, the word `*` matches one word and `#`
 *                 any number of words, including none. Dots separate words
 *
 * A look-up is one search per ancestor of the type, however many subscriptions there are. Patterns
 * are tried one by one; their total cost is bounded.
 */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include "shared/protocol/exchange-kind.h"
#include "shared/protocol/topic.h"
#include "supervisor/message/remains.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    _EXCHANGE_E_SUCCESS,
    EXCHANGE_E_FULL, /* a bound of the exchange or of the actor is reached */
};

/* Bounds of the subscriptions of one exchange, and of one actor to all exchanges. */
#define EXCHANGE_SUBSCRIPTIONS_MAX 1000000u
#define EXCHANGE_PER_ACTOR_MAX     10000u
/* Bounds of the cost of the patterns of one exchange, or of one actor, for a message: words
 * compared, some nanoseconds each. */
#define EXCHANGE_EFFORT_MAX       250000u
#define EXCHANGE_EFFORT_ACTOR_MAX 25000u

struct exchange {
    enum exchange_kind kind;
    struct index buckets;      /* struct exchange_bucket.by_topic */
    struct index owned;        /* struct exchange_subscription.by_owner */
    struct list patterns;      /* struct exchange_bucket.pattern_link */
    struct list subscriptions; /* in the order of `sequence`, that of registration */
    struct list cursors;       /* struct list_cursor.link, in these */
    uint32_t n_subscriptions;
    uint32_t effort; /* of its patterns */
    uint64_t sequence;
    char *description;   /* for lists; NULL = none; owned */
    bool declared;       /* by a .exchange file; false: created at run time */
    uint64_t creator;    /* the actor that created it; 0 = none */
    struct share *share; /* of its creator's group */
    char **admitted; /* groups that may subscribe, of MaySubscribe=; NULL = `group` alone; owned */
    char *group;     /* the creator's, else the first subscriber's; NULL = none; owned */
    /* Called when a subscription replaces another actor's. May be NULL. */
    void (*replaced)(void *userdata, uint64_t former, uint64_t successor);
    /* Messages may have another recipient now. Not called for kinds that copy; may be NULL. */
    void (*rerouted)(void *userdata);
    void *userdata;
    struct remains remains; /* once its actor has ended */
};

/* Whether each message goes to at most one subscriber. */
static inline bool exchange_picks_one(const struct exchange *exchange)
{
    return exchange->kind == EXCHANGE_SINGLE || exchange->kind == EXCHANGE_TYPED_SINGLE;
}

struct exchange_bucket;

/* Embedded in each actor that may subscribe. */
struct exchange_subscriber {
    uint64_t actor;            /* its reference */
    struct list subscriptions; /* to any exchange */
    uint32_t n_subscriptions;
    uint32_t effort; /* of those that are patterns */
};

struct exchange_subscription {
    struct list link; /* in the exchange */
    struct list bucket_link;
    struct list actor_link;      /* in the subscriber */
    struct index_entry by_owner; /* by its actor and its bucket */
    struct exchange *exchange;
    struct exchange_bucket *bucket;
    struct exchange_subscriber *subscriber;
    uint64_t sequence;
    uint32_t effort;
    struct topic topic; /* as requested; bytes owned */
};

void exchange_init(struct exchange *exchange, enum exchange_kind kind);
/* Ends all subscriptions. */
void exchange_deinit(struct exchange *exchange);
/* Ends up to `max` subscriptions, and returns their number. */
size_t exchange_end_some(struct exchange *exchange, size_t max);
/* Copied. 0 or -ENOMEM. */
int exchange_describe(struct exchange *exchange, const char *description);

/* "single" … "pattern", as in the Varlink interface; static. */
const char *exchange_kind_to_string(enum exchange_kind kind);

void exchange_subscriber_init(struct exchange_subscriber *subscriber, uint64_t actor);

/*
 * Subscribes an actor, and ends the subscription that the kind's rule replaces. 0, or
 * EXCHANGE_E_FULL or -ENOMEM with nothing changed. The type must be valid, the key within
 * TOPIC_KEY_MAX.
 */
int exchange_subscribe(struct exchange *exchange, struct exchange_subscriber *subscriber,
                       const struct topic *topic);

/* Ends an actor's subscription with exactly this type and key, as far as the kind uses them. False
 * if there was none. */
bool exchange_unsubscribe(struct exchange *exchange, struct exchange_subscriber *subscriber,
                          const struct topic *topic);

/* Ends the subscriptions of all actors for which `keeps`, called with the exchange's userdata,
 * returns false. */
void exchange_retain(struct exchange *exchange, bool (*keeps)(void *userdata, uint64_t actor));

/* Ends all subscriptions of an actor. */
void exchange_forget(struct exchange_subscriber *subscriber);

/* A subscription that a message matches. */
struct exchange_match {
    uint64_t sequence, actor;
};

/* For kinds that copy: finds the first `max` matches after the sequence `after`, in the order of
 * registration; several may be of one actor. Returns their number. For kinds that pick one
 * subscriber, exchange_pick() returns the actor, or 0. */
size_t exchange_match(const struct exchange *exchange, const struct topic *topic, uint64_t after,
                      struct exchange_match *ret, size_t max);
uint64_t exchange_pick(const struct exchange *exchange, const struct topic *topic);
