/* SPDX-License-Identifier: MIT */
#include "supervisor/message/exchange/exchange.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/message/exchange/exchange-private.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const KINDS[_EXCHANGE_N_KINDS] = {
    [EXCHANGE_SINGLE] = "single",           [EXCHANGE_TYPED_SINGLE] = "typed_single",
    [EXCHANGE_TYPED_MULTI] = "typed_multi", [EXCHANGE_ROUTING_KEY] = "routing_key",
    [EXCHANGE_PATTERN] = "pattern",
};

const char *exchange_kind_to_string(enum exchange_kind kind)
{
    return KINDS[kind];
}

void exchange_init(struct exchange *exchange, enum exchange_kind kind)
{
    *exchange = (struct exchange){.kind = kind};
    list_init(&exchange->subscriptions);
    list_init(&exchange->patterns);
    list_init(&exchange->cursors);
}

void exchange_subscriber_init(struct exchange_subscriber *subscriber, uint64_t actor)
{
    *subscriber = (struct exchange_subscriber){.actor = actor};
    list_init(&subscriber->subscriptions);
}

/* ---- the subscriptions by their topics ---- */

/* Allocates `size` zero bytes and a copy of the topic's bytes, which `ret` points at. NULL when out
 * of memory. */
static void *new_with_topic(size_t size, const struct topic *topic, struct topic *ret)
{
    char *object = calloc(1, size + topic->type_size + topic->key_size);

    if (object)
        *ret = topic_copy(topic, object + size);
    return object;
}

struct topic exchange_label(const struct exchange *exchange, const struct topic *topic)
{
    struct topic label = {.type = ""};

    if (exchange->kind != EXCHANGE_SINGLE) {
        label.type = topic->type;
        label.type_size = topic->type_size;
    }
    if (exchange->kind >= EXCHANGE_ROUTING_KEY) {
        label.key = topic->key;
        label.key_size = topic->key_size;
    }
    return label;
}

static uint64_t hash_of(const struct topic *label)
{
    const uint64_t hash = hash_bytes(label->type, label->type_size);

    return label->key ? hash ^ hash_mix(hash_bytes(label->key, label->key_size)) : hash;
}

struct exchange_bucket *exchange_find_bucket(const struct exchange *exchange,
                                             const struct topic *label)
{
    index_for_each_entry (bucket, &exchange->buckets, hash_of(label), struct exchange_bucket,
                          by_topic)
        if (topic_compare(&bucket->topic, label) == 0)
            return bucket;
    return NULL;
}

static void bucket_free(struct exchange *exchange, struct exchange_bucket *bucket)
{
    index_remove(&exchange->buckets, &bucket->by_topic);
    list_unlink(&bucket->pattern_link);
    free(bucket);
}

/* An empty bucket: put a subscription in or free it. NULL when out of memory. */
static struct exchange_bucket *bucket_new(struct exchange *exchange, const struct topic *label)
{
    struct topic copy;
    struct exchange_bucket *bucket = new_with_topic(sizeof(*bucket), label, &copy);

    if (!bucket)
        return NULL;
    bucket->topic = copy;
    list_init(&bucket->subscriptions);
    list_init(&bucket->pattern_link);
    index_add(&exchange->buckets, &bucket->by_topic, hash_of(label));
    if (exchange->kind == EXCHANGE_PATTERN && label->key &&
        exchange_is_pattern(label->key, label->key_size))
        list_push_back(&exchange->patterns, &bucket->pattern_link);
    return bucket;
}

/* ---- subscriptions ---- */

static uint64_t owner_key(const struct exchange_subscriber *subscriber,
                          const struct exchange_bucket *bucket)
{
    return hash_mix(subscriber->actor) ^ (uintptr_t)bucket;
}

static struct exchange_subscription *find_own(const struct exchange *exchange,
                                              const struct exchange_subscriber *subscriber,
                                              const struct exchange_bucket *bucket)
{
    index_for_each_entry (subscription, &exchange->owned, owner_key(subscriber, bucket),
                          struct exchange_subscription, by_owner)
        if (subscription->subscriber == subscriber && subscription->bucket == bucket)
            return subscription;
    return NULL;
}

/* The subscription that a new one to this bucket replaces; NULL = none. */
static struct exchange_subscription *find_replaced(const struct exchange *exchange,
                                                   struct exchange_subscriber *subscriber,
                                                   struct exchange_bucket *bucket)
{
    if (!bucket)
        return NULL;
    if (exchange_picks_one(exchange))
        return list_first_entry(&bucket->subscriptions, struct exchange_subscription, bucket_link);
    return find_own(exchange, subscriber, bucket);
}

static void reroute(struct exchange *exchange)
{
    if (exchange->rerouted && exchange_picks_one(exchange))
        exchange->rerouted(exchange->userdata);
}

static void subscription_end(struct exchange_subscription *subscription)
{
    struct exchange *exchange = subscription->exchange;
    struct exchange_bucket *bucket = subscription->bucket;

    list_cursors_pass(&exchange->cursors, &subscription->link);
    if (bucket->passed == &subscription->bucket_link)
        bucket->passed = subscription->bucket_link.prev == &bucket->subscriptions
                             ? NULL
                             : subscription->bucket_link.prev;
    list_unlink(&subscription->link);
    list_unlink(&subscription->bucket_link);
    list_unlink(&subscription->actor_link);
    index_remove(&exchange->owned, &subscription->by_owner);
    subscription->subscriber->n_subscriptions--;
    subscription->subscriber->effort -= subscription->effort;
    exchange->n_subscriptions--;
    exchange->effort -= subscription->effort;
    free(subscription);
    if (list_empty(&bucket->subscriptions))
        bucket_free(exchange, bucket);
    reroute(exchange);
}

/* Puts a subscription into the lists, at the position of the replaced one or at the end. */
static void subscription_place(struct exchange_subscription *subscription,
                               struct exchange_subscription *replaced)
{
    struct exchange *exchange = subscription->exchange;
    struct exchange_subscriber *subscriber = subscription->subscriber;

    if (replaced) {
        subscription->sequence = replaced->sequence;
        list_push_front(&replaced->link, &subscription->link);
        list_push_front(&replaced->bucket_link, &subscription->bucket_link);
    } else {
        subscription->sequence = ++exchange->sequence;
        list_push_back(&exchange->subscriptions, &subscription->link);
        list_push_back(&subscription->bucket->subscriptions, &subscription->bucket_link);
    }
    list_push_back(&subscriber->subscriptions, &subscription->actor_link);
    index_add(&exchange->owned, &subscription->by_owner,
              owner_key(subscriber, subscription->bucket));
    subscriber->n_subscriptions++;
    subscriber->effort += subscription->effort;
    exchange->n_subscriptions++;
    exchange->effort += subscription->effort;
    reroute(exchange);
}

static void report_replaced(const struct exchange_subscription *subscription,
                            const struct exchange_subscription *replaced)
{
    const struct exchange *exchange = subscription->exchange;

    if (exchange->replaced && replaced->subscriber != subscription->subscriber)
        exchange->replaced(exchange->userdata, replaced->subscriber->actor,
                           subscription->subscriber->actor);
}

/* The cost of a subscription for each message that it is compared with. */
static uint32_t effort_of(const struct exchange *exchange, const struct topic *label)
{
    if (exchange->kind != EXCHANGE_PATTERN || !label->key ||
        !exchange_is_pattern(label->key, label->key_size))
        return 0;
    return exchange_pattern_effort(label->key, label->key_size);
}

static int subscribe_to(struct exchange *exchange, struct exchange_subscriber *subscriber,
                        struct exchange_bucket *bucket, const struct topic *topic)
{
    struct exchange_subscription *replaced = NULL, *subscription;
    struct topic copy;

    if (!list_empty(&bucket->subscriptions))
        replaced = find_replaced(exchange, subscriber, bucket);
    subscription = new_with_topic(sizeof(*subscription), topic, &copy);
    if (!subscription)
        return -ENOMEM;
    subscription->exchange = exchange;
    subscription->subscriber = subscriber;
    subscription->bucket = bucket;
    subscription->topic = copy;
    subscription->effort = effort_of(exchange, &bucket->topic);
    subscription_place(subscription, replaced);
    if (replaced) {
        report_replaced(subscription, replaced);
        subscription_end(replaced);
    }
    return 0;
}

int exchange_subscribe(struct exchange *exchange, struct exchange_subscriber *subscriber,
                       const struct topic *topic)
{
    const struct topic label = exchange_label(exchange, topic);
    struct exchange_bucket *bucket = exchange_find_bucket(exchange, &label);
    const struct exchange_subscription *replaced = find_replaced(exchange, subscriber, bucket);
    int r;

    if (!replaced && exchange->n_subscriptions >= EXCHANGE_SUBSCRIPTIONS_MAX)
        return EXCHANGE_E_FULL;
    if (!(replaced && replaced->subscriber == subscriber) &&
        subscriber->n_subscriptions >= EXCHANGE_PER_ACTOR_MAX)
        return EXCHANGE_E_FULL;
    if (!replaced && (exchange->effort + effort_of(exchange, &label) > EXCHANGE_EFFORT_MAX ||
                      subscriber->effort + effort_of(exchange, &label) > EXCHANGE_EFFORT_ACTOR_MAX))
        return EXCHANGE_E_FULL;
    if (!bucket) {
        bucket = bucket_new(exchange, &label);
        if (!bucket)
            return -ENOMEM;
    }
    r = subscribe_to(exchange, subscriber, bucket, topic);
    if (r < 0 && list_empty(&bucket->subscriptions))
        bucket_free(exchange, bucket);
    return r;
}

bool exchange_unsubscribe(struct exchange *exchange, struct exchange_subscriber *subscriber,
                          const struct topic *topic)
{
    const struct topic label = exchange_label(exchange, topic);
    struct exchange_bucket *bucket = exchange_find_bucket(exchange, &label);
    struct exchange_subscription *own = bucket ? find_own(exchange, subscriber, bucket) : NULL;

    if (!own)
        return false;
    subscription_end(own);
    return true;
}

void exchange_forget(struct exchange_subscriber *subscriber)
{
    list_for_each_entry_safe (own, &subscriber->subscriptions, struct exchange_subscription,
                              actor_link)
        subscription_end(own);
}

void exchange_retain(struct exchange *exchange, bool (*keeps)(void *userdata, uint64_t actor))
{
    list_for_each_entry_safe (one, &exchange->subscriptions, struct exchange_subscription, link)
        if (!keeps(exchange->userdata, one->subscriber->actor))
            subscription_end(one);
}

size_t exchange_end_some(struct exchange *exchange, size_t max)
{
    struct list *node;
    size_t n = 0;

    for (; n < max && (node = list_first(&exchange->subscriptions)); n++)
        subscription_end(list_entry(node, struct exchange_subscription, link));
    return n;
}

void exchange_deinit(struct exchange *exchange)
{
    list_cursors_end(&exchange->cursors);
    (void)exchange_end_some(exchange, SIZE_MAX);
    index_deinit(&exchange->buckets);
    index_deinit(&exchange->owned);
    free(TAKE_PTR(exchange->description));
    free(TAKE_PTR(exchange->group));
    exchange->admitted = strv_free(exchange->admitted);
}

int exchange_describe(struct exchange *exchange, const char *description)
{
    char *copy = strdup(description);

    if (!copy)
        return -ENOMEM;
    free(exchange->description);
    exchange->description = copy;
    return 0;
}
